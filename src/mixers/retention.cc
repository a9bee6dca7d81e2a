// SPDX-License-Identifier: Apache-2.0
// Multi-scale retention (Sun et al. 2023, "Retentive Network", equations 5 to 8): products of
// rotated queries and keys that decay with the distance, faster in the first heads; a norm of each
// head; a gate. In an encoder the decay is the same in both directions.
#include <fmt/format.h>

#include <cmath>

#include "mixers/chunked_attention.h"
#include "mixers/projections.h"
#include "nn/sinusoids.h"
#include "nn/tensors.h"

namespace syntra {
namespace {

constexpr double kNormEpsilon = 1e-6;  // of the norm

class Retention final : public TokenMixer {
 public:
  explicit Retention(const RetentionConfig& config) : config_(config) {}

  MixerTraits traits() const override {
    MixerTraits traits{.causal = true};
    const int64_t heads = config_.heads();
    traits.per_token.push_back({heads * config_.head_size(), {"heads", "head_size"}});
    traits.per_token.push_back({heads * config_.value_size(), {"heads", "value_size"}});
    return traits;
  }

  void Validate(const FieldReport& report) const override {
    const std::string size = report.Path("head_size");
    if (config_.head_size() % 2 == 0) return;
    report.Add({size}, fmt::format("{} {} is odd, but pairs of columns are rotated; make it even",
                                   size, config_.head_size()));
  }

  Value Build(const Scope& scope, const MixerInput& input) const override {
    ChunkedOperands operands =
        Operands(scope, input.x, Angles(scope, scope.TypeOf(input.x).shape[1]));
    operands.key = WithoutPadding(scope, operands.key, input.segments);
    return Output(scope, Attend(scope, Attention(input.causal), operands), input.x);
  }

  // Keeps the decayed sums of k v^T.
  Value BuildStep(const Scope& scope, const MixerStep& step) const override {
    const Value angles = GatherRows(scope, Angles(scope, step.length), 0, step.start);
    return Output(scope,
                  AttendStep(scope, Attention(true), Operands(scope, step.x, angles), step.state),
                  step.x);
  }

 private:
  // Sines, then cosines, of the angles by which positions are rotated: f32 [length, K].
  Value Angles(const Scope& scope, int64_t length) const {
    const int64_t size = config_.head_size();
    return scope.program().Constant({length, size},
                                    SinusoidTable(SinusoidalPositions::HALVES, length, size));
  }

  ChunkedOperands Operands(const Scope& scope, Value x, Value angles) const {
    const int64_t inner = int64_t{config_.heads()} * config_.head_size();
    const double factor = 1 / std::sqrt(static_cast<double>(config_.head_size()));
    return {.query = Rotated(scope, Project(scope, "query", x, inner), angles),
            .key = Rotated(scope, Project(scope, "key", x, inner, factor), angles),
            .value = Project(scope, "value", x, int64_t{config_.heads()} * config_.value_size())};
  }

  // Columns n and n + K / 2 of a head, as a complex number, times exp(i angle).
  Value Rotated(const Scope& scope, Value x, Value angles) const {
    const int64_t half = config_.head_size() / 2;
    const int64_t rows = scope.TypeOf(angles).shape[0];
    const auto factors = [&](int64_t begin) {
      return Reshape(scope, Slice(scope, angles, 1, begin, half), {rows, 1, half});
    };
    const Value sine = factors(0), cosine = factors(half);
    const Value in_heads = InHeads(scope, x, config_.heads());
    const Value real = Slice(scope, in_heads, 3, 0, half);
    const Value imaginary = Slice(scope, in_heads, 3, half, half);
    const Value turned_real = Add(scope, Multiply(scope, real, cosine),
                                  Multiply(scope, imaginary, AffineMap(scope, sine, -1, 0)));
    const Value turned_imaginary =
        Add(scope, Multiply(scope, imaginary, cosine), Multiply(scope, real, sine));
    return Joined(scope, Concatenate(scope, 3, {turned_real, turned_imaginary}));
  }

  // The decay of head h is 1 - 2^(-5 - h).
  ChunkedAttention Attention(bool causal) const {
    ChunkedAttention attention{
        .heads = config_.heads(), .causal = causal, .chunk_length = config_.chunk_length()};
    for (int h = 0; h < config_.heads(); ++h) attention.decay.push_back(1 - std::exp2(-5 - h));
    return attention;
  }

  Value Output(const Scope& scope, Value mixed, Value x) const {
    const int64_t size = config_.value_size();
    const auto constant = [&](double value) {
      return scope.program().FillConstant({DType::kF32, {size}}, value);
    };
    const Value normed = scope.program().Record(
        "layer_norm", {{"epsilon", kNormEpsilon}},
        {InHeads(scope, mixed, config_.heads()), constant(1), constant(0)})[0];
    const Value gate = Activation(scope, "silu", Project(scope, "gate", x, config_.heads() * size));
    return ProjectOutput(scope, Multiply(scope, Joined(scope, normed), gate),
                         scope.TypeOf(x).shape[2]);
  }

  RetentionConfig config_;
};

}  // namespace

std::unique_ptr<TokenMixer> mixer_retention(const MixerConfig& config) {
  return std::make_unique<Retention>(config.retention());
}

}  // namespace syntra
