// SPDX-License-Identifier: Apache-2.0
// FNet (Lee-Thorp et al. 2021, equation 3): the real part of a discrete Fourier transform over
// positions and columns.
#include <cmath>

#include "base/error.h"
#include "mixers/mixer.h"
#include "nn/tensors.h"

namespace syntra {
namespace {

class Fourier final : public TokenMixer {
 public:
  explicit Fourier(const FourierConfig& config) : config_(config) {}

  MixerTraits traits() const override {
    return {.limits = {LengthLimit::OfMaxLength(config_.max_length())}};
  }

  Value Build(const Scope& scope, const MixerInput& input) const override {
    const Value x = WithoutPadding(scope, input.x, input.segments);
    const TensorType type = scope.TypeOf(x);
    const int64_t length = type.shape[1], width = type.shape[2], period = config_.max_length();
    SYNTRA_CHECK(length <= period, "{} positions for a transform of {}", length, period);
    const double factor =
        config_.orthonormal() ? 1 / std::sqrt(static_cast<double>(period * width)) : 1;
    return scope.One("fourier_transform", {{"period", period}, {"factor", factor}}, {x});
  }

 private:
  FourierConfig config_;
};

}  // namespace

std::unique_ptr<TokenMixer> mixer_fourier(const MixerConfig& config) {
  return std::make_unique<Fourier>(config.fourier());
}

}  // namespace syntra
