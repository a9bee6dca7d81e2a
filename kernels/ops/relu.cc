// SPDX-License-Identifier: Apache-2.0
// y = max(x, 0), any shape. Backward from the result: dx = dy where y > 0, else 0.
#include "kernels/ops/shapes.h"

namespace syntra {
namespace {

std::vector<TensorType> Infer(const Attributes&, std::span<const TensorType> inputs) {
  CheckOperands("relu", inputs, {{"x", kActivation, kAnyRank}});
  return {inputs[0]};
}

void Reference(const OpCall&, std::span<const ReferenceTensor> inputs,
               std::span<const ReferenceTensor> outputs) {
  const auto x = inputs[0].numbers, y = outputs[0].numbers;
  for (size_t i = 0; i < x.size(); ++i) y[i] = x[i] > 0.0 ? x[i] : 0.0;
}

void Gradient(GradientRule& rule) {
  rule.Contribute("relu_grad", {}, {rule.output(0), rule.output_gradient(0)}, {0});
}

std::vector<OpCase> Cases() {
  std::vector<OpCase> cases;
  for (DType dtype : kActivationTypes) {
    cases.push_back({DTypeName(dtype), {}, {{dtype, {2, 3, 19}}}, {}});
    cases.push_back({DTypeName(dtype) + "_wide", {}, {{dtype, {2, 7, 67}}}, {}});
  }
  return cases;
}

std::vector<TensorType> GradInfer(const Attributes&, std::span<const TensorType> inputs) {
  CheckOperands("relu_grad", inputs, {{"y", kActivation, kAnyRank}, {"dy", kActivation, kAnyRank}});
  SYNTRA_CHECK(inputs[0] == inputs[1], "relu_grad: y is {}, dy {}", ToString(inputs[0]),
               ToString(inputs[1]));
  return {inputs[0]};
}

void GradReference(const OpCall&, std::span<const ReferenceTensor> inputs,
                   std::span<const ReferenceTensor> outputs) {
  const auto y = inputs[0].numbers, dy = inputs[1].numbers, dx = outputs[0].numbers;
  for (size_t i = 0; i < y.size(); ++i) dx[i] = y[i] > 0.0 ? dy[i] : 0.0;
}

std::vector<OpCase> GradCases() {
  std::vector<OpCase> cases;
  for (DType dtype : kActivationTypes) {
    const TensorType small = {dtype, {2, 3, 19}}, wide = {dtype, {2, 7, 67}};
    cases.push_back({DTypeName(dtype), {}, {small, small}, {}});
    cases.push_back({DTypeName(dtype) + "_wide", {}, {wide, wide}, {}});
  }
  return cases;
}

}  // namespace

Op op_relu() {
  return {.infer = Infer, .reference = Reference, .gradient = Gradient, .cases = Cases};
}

Op op_relu_grad() { return {.infer = GradInfer, .reference = GradReference, .cases = GradCases}; }

}  // namespace syntra
