// SPDX-License-Identifier: Apache-2.0
// Dynamic convolution (Wu et al. 2019, section 4): each position computes its filters from itself.
#include <cmath>

#include "mixers/convolution.h"

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
        "filters", {width, count * taps()}, {"conv", "taps"},
        is_mesh() ? Initializer::Normal(1 / std::sqrt(static_cast<double>(width * taps())))
                  : Initializer::GlorotUniform(width, count * taps()));
    Value scores = scope.One(
        "matmul", {{"transpose_a", false}, {"transpose_b", false}, {"dtype", std::string("f32")}},
        {x, matrix});
    if (is_mesh()) {
      const Value bias =
          scope.Parameter("filters_bias", {count * taps()}, {"taps"}, Initializer::Constant(0));
      scores = scope.One("add", {}, {scores, bias});
    }
    return scope.One(
        "reshape", {{"shape", Attributes::Integers{shape[0], shape[1], count, taps()}}}, {scores});
  }
};

}  // namespace

std::unique_ptr<TokenMixer> mixer_dynamic_conv(const MixerConfig& config) {
  return std::make_unique<DynamicConv>(config.dynamic_conv());
}

}  // namespace syntra
