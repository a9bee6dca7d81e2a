// SPDX-License-Identifier: Apache-2.0
// The gated GELU of T5 v1.1 (Shazeer 2020, "GEGLU"): y = gelu(x) * g, all [.., F]; gelu in its tanh
// form (math/activation.inc). Backward: dx = dy g gelu'(x), dg = dy gelu(x).
#include "kernels/math/activation.h"
#include "kernels/ops/shapes.h"

namespace syntra {
namespace {

using Gelu = scalar::GeluTanh;

std::vector<TensorType> Infer(const Attributes&, std::span<const TensorType> inputs) {
  CheckOperands("gated_gelu", inputs, {{"x", kActivation, kAnyRank}, {"g", kActivation, kAnyRank}});
  CheckType("gated_gelu", "g", inputs[1], inputs[0]);
  return {inputs[0]};
}

void Reference(const OpCall&, std::span<const ReferenceTensor> inputs,
               std::span<const ReferenceTensor> outputs) {
  const auto x = inputs[0].numbers, g = inputs[1].numbers, y = outputs[0].numbers;
  for (size_t i = 0; i < x.size(); ++i) y[i] = Gelu::Value(x[i]) * g[i];
}

void Gradient(GradientRule& rule) {
  rule.Contribute("gated_gelu_grad", {}, {rule.input(0), rule.input(1), rule.output_gradient(0)},
                  {0, 1});
}

std::vector<OpCase> Cases() {
  std::vector<OpCase> cases;
  for (DType dtype : kActivationTypes) {
    const TensorType small = {dtype, {2, 3, 19}}, wide = {dtype, {2, 7, 67}};
    cases.push_back({DTypeName(dtype), {}, {small, small}, {}});
    cases.push_back({DTypeName(dtype) + "_wide", {}, {wide, wide}, {}});
  }
  return cases;
}

std::vector<TensorType> GradInfer(const Attributes&, std::span<const TensorType> inputs) {
  CheckOperands(
      "gated_gelu_grad", inputs,
      {{"x", kActivation, kAnyRank}, {"g", kActivation, kAnyRank}, {"dy", kActivation, kAnyRank}});
  CheckType("gated_gelu_grad", "g", inputs[1], inputs[0]);
  CheckType("gated_gelu_grad", "dy", inputs[2], inputs[0]);
  return {inputs[0], inputs[1]};
}

void GradReference(const OpCall&, std::span<const ReferenceTensor> inputs,
                   std::span<const ReferenceTensor> outputs) {
  const auto x = inputs[0].numbers, g = inputs[1].numbers, dy = inputs[2].numbers;
  for (size_t i = 0; i < x.size(); ++i) {
    if (outputs[0].present()) outputs[0].numbers[i] = dy[i] * g[i] * Gelu::Slope(x[i]);
    if (outputs[1].present()) outputs[1].numbers[i] = dy[i] * Gelu::Value(x[i]);
  }
}

std::vector<OpCase> GradCases() {
  std::vector<OpCase> cases;
  for (DType dtype : kActivationTypes) {
    const TensorType small = {dtype, {2, 3, 19}}, wide = {dtype, {2, 7, 67}};
    cases.push_back({DTypeName(dtype), {}, {small, small, small}, {}});
    cases.push_back({DTypeName(dtype) + "_wide", {}, {wide, wide, wide}, {}});
  }
  return cases;
}

}  // namespace

Op op_gated_gelu() {
  return {.infer = Infer,
          .reference = Reference,
          .gradient = Gradient,
          .cases = Cases,
          .elementwise = true};
}

Op op_gated_gelu_grad() {
  return {.infer = GradInfer, .reference = GradReference, .cases = GradCases};
}

}  // namespace syntra
