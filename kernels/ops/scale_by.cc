// SPDX-License-Identifier: Apache-2.0
// y = x * weights[index]: x any shape, weights [n] f32. Backward: dx = dy * weights[index];
// dweights [n] is sum(dy * x) at index, zero elsewhere.
// Attributes {index}.
#include <algorithm>

#include "kernels/ops/shapes.h"

namespace syntra {
namespace {

int64_t Index(const Attributes& attributes, const TensorType& weights) {
  const int64_t index = attributes.Int("index");
  SYNTRA_CHECK(index >= 0 && index < weights.shape[0], "scale_by: weight {} of {}", index,
               ToString(weights));
  return index;
}

std::vector<TensorType> Infer(const Attributes& attributes, std::span<const TensorType> inputs) {
  CheckOperands("scale_by", inputs, {{"x", kActivation, kAnyRank}, {"weights", kParameter, 1}});
  Index(attributes, inputs[1]);
  return {inputs[0]};
}

void Reference(const OpCall& call, std::span<const ReferenceTensor> inputs,
               std::span<const ReferenceTensor> outputs) {
  const auto x = inputs[0].numbers, y = outputs[0].numbers;
  const double weight = inputs[1].numbers[Index(call.attributes, inputs[1].type)];
  for (size_t i = 0; i < x.size(); ++i) y[i] = x[i] * weight;
}

void Gradient(GradientRule& rule) {
  rule.Contribute("scale_by_grad", rule.attributes(),
                  {rule.input(0), rule.input(1), rule.output_gradient(0)}, {0, 1});
}

std::vector<OpCase> Cases() {
  std::vector<OpCase> cases;
  for (DType dtype : kActivationTypes) {
    cases.push_back({DTypeName(dtype), {{"index", 1}}, {{dtype, {2, 3, 19}}, F32({3})}, {}});
    cases.push_back(
        {DTypeName(dtype) + "_first", {{"index", 0}}, {{dtype, {7, 67}}, F32({2})}, {}});
  }
  return cases;
}

std::vector<TensorType> GradInfer(const Attributes& attributes,
                                  std::span<const TensorType> inputs) {
  CheckOperands(
      "scale_by_grad", inputs,
      {{"x", kActivation, kAnyRank}, {"weights", kParameter, 1}, {"dy", kActivation, kAnyRank}});
  CheckShape("scale_by_grad", "dy", inputs[2], inputs[0].shape);
  Index(attributes, inputs[1]);
  return {inputs[0], inputs[1]};
}

void GradReference(const OpCall& call, std::span<const ReferenceTensor> inputs,
                   std::span<const ReferenceTensor> outputs) {
  const auto x = inputs[0].numbers, weights = inputs[1].numbers, dy = inputs[2].numbers;
  const int64_t index = Index(call.attributes, inputs[1].type);
  double dot = 0.0;
  for (size_t i = 0; i < x.size(); ++i) {
    dot += dy[i] * x[i];
    if (outputs[0].present()) outputs[0].numbers[i] = dy[i] * weights[index];
  }
  if (!outputs[1].present()) return;
  std::ranges::fill(outputs[1].numbers, 0.0);
  outputs[1].numbers[index] = dot;
}

std::vector<OpCase> GradCases() {
  std::vector<OpCase> cases;
  for (DType dtype : kActivationTypes) {
    const TensorType small = {dtype, {2, 3, 19}}, wide = {dtype, {7, 67}};
    cases.push_back({DTypeName(dtype), {{"index", 1}}, {small, F32({3}), small}, {}});
    cases.push_back({DTypeName(dtype) + "_first", {{"index", 0}}, {wide, F32({2}), wide}, {}});
  }
  return cases;
}

}  // namespace

Op op_scale_by() {
  return {.infer = Infer, .reference = Reference, .gradient = Gradient, .cases = Cases};
}

Op op_scale_by_grad() {
  return {.infer = GradInfer, .reference = GradReference, .cases = GradCases};
}

}  // namespace syntra
