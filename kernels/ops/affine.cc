// SPDX-License-Identifier: Apache-2.0
// y = scale x + shift with constant numbers: x A of any shape. Backward: scale dy.
// Attributes {scale, shift}.
#include "kernels/ops/shapes.h"

namespace syntra {
namespace {

std::vector<TensorType> Infer(const Attributes&, std::span<const TensorType> inputs) {
  CheckOperands("affine", inputs, {{"x", kActivation, kAnyRank}});
  return {inputs[0]};
}

void Reference(const OpCall& call, std::span<const ReferenceTensor> inputs,
               std::span<const ReferenceTensor> outputs) {
  const double scale = call.attributes.Number("scale"), shift = call.attributes.Number("shift");
  const auto x = inputs[0].numbers, y = outputs[0].numbers;
  for (size_t i = 0; i < x.size(); ++i) y[i] = scale * x[i] + shift;
}

void Gradient(GradientRule& rule) {
  const double scale = rule.attributes().Number("scale");
  if (scale == 1) return rule.Pass(0, rule.output_gradient(0));
  rule.Contribute("affine", {{"scale", scale}, {"shift", 0.0}}, {rule.output_gradient(0)}, {0});
}

std::vector<OpCase> Cases() {
  return {{"f32", {{"scale", -1.0}, {"shift", 1.0}}, {F32({2, 3, 19})}, {}},
          {"shift", {{"scale", 1.0}, {"shift", 0.5}}, {F32({3, 7})}, {}},
          {"bf16", {{"scale", 0.3}, {"shift", 0.0}}, {BF16({5, 67})}, {}}};
}

}  // namespace

Op op_affine() {
  return {.infer = Infer,
          .reference = Reference,
          .gradient = Gradient,
          .cases = Cases,
          .elementwise = true};
}

}  // namespace syntra
