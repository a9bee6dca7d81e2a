// SPDX-License-Identifier: Apache-2.0
// The token-mixing network of MLP-Mixer (Tolstikhin et al. 2021, equation 1): two layers over the
// positions of each column, the same for all columns.
#include <cmath>

#include "mixers/mixer.h"
#include "nn/tensors.h"

namespace syntra {
namespace {

class Mlp final : public TokenMixer {
 public:
  explicit Mlp(const MlpConfig& config) : config_(config) {}

  MixerTraits traits() const override {
    return {.limits = {LengthLimit::OfMaxLength(config_.max_length())}};
  }

  Value Build(const Scope& scope, const MixerInput& input) const override {
    const int64_t length = scope.TypeOf(input.x).shape[1], n = config_.max_length();
    const int64_t hidden = config_.width();
    const Value in = Matrix(scope, "input", hidden, n);
    const Value out = Matrix(scope, "output", n, hidden);
    const Value x = WithoutPadding(scope, input.x, input.segments);
    const Value units = Activation(scope, "gelu_tanh",
                                   Add(scope, Mapped(scope, First(scope, in, 1, length), x),
                                       Bias(scope, "input_bias", hidden)));
    const Value bias = First(scope, Bias(scope, "output_bias", n), 0, length);
    return Add(scope, Mapped(scope, First(scope, out, 0, length), units), bias);
  }

 private:
  static Value Matrix(const Scope& scope, const char* name, int64_t to, int64_t from) {
    const double deviation = 1 / std::sqrt(static_cast<double>(from));
    return scope.Parameter(name, {to, from}, Initializer::TruncatedNormal(deviation));
  }

  // One number for each row, as [rows, 1].
  static Value Bias(const Scope& scope, const char* name, int64_t rows) {
    return scope.Parameter(name, {rows, 1}, Initializer::Constant(0));
  }

  static Value Mapped(const Scope& scope, Value matrix, Value x) {
    return scope.One("shared_matmul", {{"transpose", false}}, {matrix, x});
  }

  MlpConfig config_;
};

}  // namespace

std::unique_ptr<TokenMixer> mixer_mlp(const MixerConfig& config) {
  return std::make_unique<Mlp>(config.mlp());
}

}  // namespace syntra
