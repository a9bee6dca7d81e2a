// SPDX-License-Identifier: Apache-2.0
// Dynamic convolution (Wu et al. 2019, section 4): each position computes its filters from itself.
#include <cmath>

#include "mixers/convolution.h"
#include "nn/layers.h"
#include "nn/tensors.h"

namespace syntra {
namespace {

class DynamicConv final : public ConvolutionMixer {
 public:
  explicit DynamicConv(const ConvolutionConfig& config) : ConvolutionMixer(config) {}

 private:
  // Mesh TensorFlow's form has a projection for each tap, with a bias.
  Value Scores(const Scope& scope, Value x) const override {
    const Shape shape = scope.TypeOf(x).shape;
    const int64_t width = shape[2], count = filters(width);
    const Value matrix = scope.Parameter(
        "filters", {width, count * taps()},
        is_mesh() ? Initializer::Normal(1 / std::sqrt(static_cast<double>(width * taps())))
                  : Initializer::GlorotUniform(width, count * taps()));
    Value scores = Product(scope, x, matrix, DType::kF32);
    if (is_mesh()) scores = AddBias(scope, "filters_bias", scores);
    return Reshape(scope, scores, {shape[0], shape[1], count, taps()});
  }
};

}  // namespace

std::unique_ptr<TokenMixer> mixer_dynamic_conv(const MixerConfig& config) {
  return std::make_unique<DynamicConv>(config.dynamic_conv());
}

}  // namespace syntra
