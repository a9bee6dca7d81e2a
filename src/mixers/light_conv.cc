// SPDX-License-Identifier: Apache-2.0
// Lightweight convolution (Wu et al. 2019, section 3): the filters are learned, and the same at
// every position.
#include <cmath>

#include "mixers/convolution.h"

namespace syntra {
namespace {

class LightConv final : public ConvolutionMixer {
 public:
  explicit LightConv(const ConvolutionConfig& config) : ConvolutionMixer(config) {}

 private:
  Value Scores(const Scope& scope, Value x) const override {
    const int64_t count = filters(scope.TypeOf(x).shape[-1]);
    // The authors' is Glorot's over a filter of one channel, Mesh TensorFlow's has variance 1 / k.
    const Initializer initializer =
        is_mesh() ? Initializer::TruncatedNormal(1 / std::sqrt(static_cast<double>(taps())))
                  : Initializer::GlorotUniform(taps(), taps() * count);
    return scope.Parameter("filters", {count, taps()}, initializer);
  }
};

}  // namespace

std::unique_ptr<TokenMixer> mixer_light_conv(const MixerConfig& config) {
  return std::make_unique<LightConv>(config.light_conv());
}

}  // namespace syntra
