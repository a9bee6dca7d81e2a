// SPDX-License-Identifier: Apache-2.0
// gMLP (Liu et al. 2021, section 2): a projection whose one half gates the other after a map over
// positions; with a tiny attention beside that map aMLP (section 4.4).
#include <fmt/format.h>

#include <cmath>

#include "mixers/mixer.h"
#include "mixers/projections.h"
#include "nn/attention.h"
#include "nn/layers.h"
#include "nn/tensors.h"

namespace syntra {
namespace {

constexpr double kGateEpsilon = 1e-5;  // of the gate's LayerNorm

class GatedMlp final : public TokenMixer {
 public:
  explicit GatedMlp(const GatedMlpConfig& config) : config_(config) {}

  MixerTraits traits() const override {
    return {.causal = true,
            .prefills = true,
            .limits = {LengthLimit::OfMaxLength(config_.max_length())},
            .per_token = {{config_.width(), {"width"}}}};
  }

  void Validate(const FieldReport& report) const override {
    const std::string width = report.Path("width"), heads = report.Path("heads");
    if (config_.width() % 2 != 0) {
      report.Add({width},
                 fmt::format("{} {} is odd, but one half of it gates the other; make it even",
                             width, config_.width()));
    } else if (config_.heads() > 0 && config_.width() / 2 % config_.heads() != 0) {
      report.Add({heads, width},
                 fmt::format("{} {} does not divide half of {} {}; choose one that does", heads,
                             config_.heads(), width, config_.width()));
    }
  }

  Value Build(const Scope& scope, const MixerInput& input) const override {
    const int64_t length = scope.TypeOf(input.x).shape[1];
    const Halves halves = Split(scope, input.x);
    Remember(scope, input, "gate", halves.gate);
    const Value gate = WithoutPadding(scope, halves.gate, input.segments);
    Value map = Map(scope);
    if (input.causal) map = Multiply(scope, map, Triangle(scope));
    map = First(scope, First(scope, map, 1, length), 2, length);
    const Value bias = First(scope, Bias(scope), 0, length);
    Value mixed = Gate(scope, map, gate, bias);
    if (config_.attention_size() > 0) {
      const AttentionMask mask = AttentionMask::Within(input.segments, {}, input.causal);
      const AttentionOperands operands = Operands(scope, input.x);
      Remember(scope, input, "key", operands.key);
      Remember(scope, input, "value", operands.value);
      mixed = Add(scope, mixed, Attend(scope, operands, mask));
    }
    return Output(scope, Multiply(scope, halves.gated, mixed), input.x);
  }

  // Remembers the gates of all positions, and the attention's keys and values.
  Value BuildStep(const Scope& scope, const MixerStep& step) const override {
    const Halves halves = Split(scope, step.x);
    const auto row_of = [&](Value table, int64_t axis) {
      return GatherRows(scope, table, axis, step.start);
    };
    const Value row = Multiply(scope, row_of(Map(scope), 1), row_of(Triangle(scope), 0));
    const Value map = First(scope, row, 2, step.length);
    Value mixed =
        Gate(scope, map, Remember(scope, step, "gate", halves.gate), row_of(Bias(scope), 0));
    if (config_.attention_size() > 0) {
      AttentionOperands operands = Operands(scope, step.x);
      operands.key = Remember(scope, step, "key", operands.key);
      operands.value = Remember(scope, step, "value", operands.value);
      mixed =
          Add(scope, mixed, Attend(scope, operands, {.query_start = step.start, .causal = true}));
    }
    return Output(scope, Multiply(scope, halves.gated, mixed), step.x);
  }

 private:
  struct Halves {
    Value gated, gate;  // [B, T, width / 2], the gate normalised
  };

  Halves Split(const Scope& scope, Value x) const {
    const int64_t half = config_.width() / 2;
    const Value hidden =
        Activation(scope, "gelu_erf",
                   AddBias(scope, "input_bias", Project(scope, "input", x, config_.width())));
    const auto parameter = [&](const char* name, double start) {
      return scope.Parameter(name, {half}, Initializer::Constant(start));
    };
    const Value gate =
        scope.program().Record("layer_norm", {{"epsilon", kGateEpsilon}},
                               {Slice(scope, hidden, 2, half, half), parameter("gate_norm", 1),
                                parameter("gate_norm_bias", 0)})[0];
    return {Slice(scope, hidden, 2, 0, half), gate};
  }

  // The map over positions, [H, N, N]; nearly zero at first.
  Value Map(const Scope& scope) const {
    const int64_t heads = config_.heads(), n = config_.max_length();
    return scope.Parameter("map", {heads, n, n},
                           Initializer::Uniform(1e-3 / static_cast<double>(n)));
  }

  // Ones up to each position, [N, N]: the factors of a causal map.
  Value Triangle(const Scope& scope) const {
    const int64_t n = config_.max_length();
    std::vector<float> triangle(n * n);
    for (int64_t i = 0; i < n; ++i) std::fill_n(triangle.begin() + i * n, i + 1, 1.0F);
    return scope.program().Constant({n, n}, std::move(triangle));
  }

  // [N, H, 1]; one at first, so that a new layer passes its input on.
  Value Bias(const Scope& scope) const {
    return scope.Parameter("map_bias", {config_.max_length(), config_.heads(), 1},
                           Initializer::Constant(1));
  }

  // map . gate + bias, as [B, T, width / 2].
  Value Gate(const Scope& scope, Value map, Value gate, Value bias) const {
    const Value mapped = scope.One("shared_matmul", {{"transpose", false}}, {map, gate});
    return Joined(scope, Add(scope, InHeads(scope, mapped, config_.heads()), bias));
  }

  AttentionOperands Operands(const Scope& scope, Value x) const {
    const int64_t size = config_.attention_size();
    const auto project = [&](const char* name, int64_t to) {
      return Project(scope / "attention", name, x, to);
    };
    // The queries' factor is a part of the scores, not of the first values: it is no head of T5's.
    const Value query =
        AffineMap(scope, project("query", size), 1 / std::sqrt(static_cast<double>(size)));
    return {.query = query, .key = project("key", size), .value = project("value", size)};
  }

  Value Attend(const Scope& scope, const AttentionOperands& operands,
               const AttentionMask& mask) const {
    return Project(scope / "attention", "output", Attention(scope, 1, operands, mask),
                   config_.width() / 2);
  }

  Value Output(const Scope& scope, Value x, Value like) const {
    const int64_t width = scope.TypeOf(like).shape[2];
    return AddBias(scope, "output_bias", ProjectOutput(scope, x, width));
  }

  GatedMlpConfig config_;
};

}  // namespace

std::unique_ptr<TokenMixer> mixer_gated_mlp(const MixerConfig& config) {
  return std::make_unique<GatedMlp>(config.gated_mlp());
}

}  // namespace syntra
