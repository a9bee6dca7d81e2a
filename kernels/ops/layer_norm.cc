// SPDX-License-Identifier: Apache-2.0
// y = (x - mean) / sqrt(variance + epsilon) scale + bias over the last axis, in f32 (Ba, Kiros and
// Hinton 2016): x A of any rank, scale, bias f32 [N]. Outputs y, and for the gradient mean and
// inverse deviation r, f32 [..], which have no gradient.
// Attributes {epsilon}. Backward, with n = (x - mean) r and g = dy scale:
//   dx = r (g - mean(g) - n mean(g n)); dscale = sum of dy n, dbias = sum of dy over all rows.
#include <cmath>

#include "kernels/ops/shapes.h"

namespace syntra {
namespace {

std::vector<TensorType> Infer(const Attributes&, std::span<const TensorType> inputs) {
  CheckOperands(
      "layer_norm", inputs,
      {{"x", kActivation, AtLeast(1)}, {"scale", kParameter, 1}, {"bias", kParameter, 1}});
  const Shape& x = inputs[0].shape;
  CheckShape("layer_norm", "scale", inputs[1], {x[-1]});
  CheckShape("layer_norm", "bias", inputs[2], {x[-1]});
  const TensorType of_rows = F32(x.Without(-1));
  return {inputs[0], of_rows, of_rows};
}

void Reference(const OpCall& call, std::span<const ReferenceTensor> inputs,
               std::span<const ReferenceTensor> outputs) {
  const int64_t width = inputs[0].dim(-1);
  const auto x = inputs[0].numbers, scale = inputs[1].numbers, bias = inputs[2].numbers;
  for (int64_t row = 0; row < inputs[0].type.shape.rows(); ++row) {
    const auto values = x.subspan(row * width, width);
    double mean = 0.0, variance = 0.0;
    for (const double value : values) mean += value / static_cast<double>(width);
    for (const double value : values) {
      variance += (value - mean) * (value - mean) / static_cast<double>(width);
    }
    const double inverse = 1.0 / std::sqrt(variance + call.attributes.Number("epsilon"));
    for (int64_t j = 0; j < width && outputs[0].present(); ++j) {
      outputs[0].numbers[row * width + j] = (values[j] - mean) * inverse * scale[j] + bias[j];
    }
    if (outputs[1].present()) outputs[1].numbers[row] = mean;
    if (outputs[2].present()) outputs[2].numbers[row] = inverse;
  }
}

void Gradient(GradientRule& rule) {
  rule.Contribute(
      "layer_norm_grad", {},
      {rule.input(0), rule.input(1), rule.output(1), rule.output(2), rule.output_gradient(0)},
      {0, 1, 2});
}

std::vector<OpCase> Cases() {
  const auto make = [](const char* name, TensorType x) {
    const int64_t width = x.shape[-1];
    return OpCase{name, {{"epsilon", 1e-5}}, {std::move(x), F32({width}), F32({width})}, {}};
  };
  return {make("f32", F32({2, 3, 19})), make("bf16", BF16({5, 67})), make("long", F32({3, 41, 67})),
          make("wide", BF16({1, 3, 1030}))};
}

std::vector<TensorType> GradInfer(const Attributes&, std::span<const TensorType> inputs) {
  CheckOperands("layer_norm_grad", inputs,
                {{"x", kActivation, AtLeast(1)},
                 {"scale", kParameter, 1},
                 {"mean", kParameter, kAnyRank},
                 {"inverse deviation", kParameter, kAnyRank},
                 {"dy", kActivation, AtLeast(1)}});
  const Shape& x = inputs[0].shape;
  CheckShape("layer_norm_grad", "scale", inputs[1], {x[-1]});
  CheckShape("layer_norm_grad", "mean", inputs[2], x.Without(-1));
  CheckShape("layer_norm_grad", "inverse deviation", inputs[3], x.Without(-1));
  CheckType("layer_norm_grad", "dy", inputs[4], inputs[0]);
  return {inputs[0], inputs[1], inputs[1]};
}

void GradReference(const OpCall&, std::span<const ReferenceTensor> inputs,
                   std::span<const ReferenceTensor> outputs) {
  const int64_t width = inputs[0].dim(-1);
  const auto x = inputs[0].numbers, scale = inputs[1].numbers, dy = inputs[4].numbers;
  for (int64_t row = 0; row < inputs[0].type.shape.rows(); ++row) {
    const double mean = inputs[2].numbers[row], inverse = inputs[3].numbers[row];
    const auto normal = [&](int64_t j) { return (x[row * width + j] - mean) * inverse; };
    double sum = 0.0, dot = 0.0;
    for (int64_t j = 0; j < width; ++j) {
      const double g = dy[row * width + j] * scale[j];
      sum += g / static_cast<double>(width);
      dot += g * normal(j) / static_cast<double>(width);
    }
    for (int64_t j = 0; j < width; ++j) {
      const double slope = dy[row * width + j];
      if (outputs[0].present()) {
        outputs[0].numbers[row * width + j] = inverse * (slope * scale[j] - sum - normal(j) * dot);
      }
      if (outputs[1].present()) outputs[1].numbers[j] += slope * normal(j);
      if (outputs[2].present()) outputs[2].numbers[j] += slope;
    }
  }
}

}  // namespace

Op op_layer_norm() {
  return {.infer = Infer, .reference = Reference, .gradient = Gradient, .cases = Cases};
}

// Its cases are the gradients of layer_norm's.
Op op_layer_norm_grad() { return {.infer = GradInfer, .reference = GradReference}; }

}  // namespace syntra
