// SPDX-License-Identifier: Apache-2.0
// y = softmax of x over the last axis, computed in f32; x A of any rank. At least one element of a
// row is finite. Backward from the result: dx = y (dy - sum of y dy over the row).
#include <algorithm>
#include <cmath>

#include "kernels/ops/shapes.h"

namespace syntra {
namespace {

std::vector<TensorType> Infer(const Attributes&, std::span<const TensorType> inputs) {
  CheckOperands("softmax", inputs, {{"x", kActivation, AtLeast(1)}});
  return {inputs[0]};
}

void Reference(const OpCall&, std::span<const ReferenceTensor> inputs,
               std::span<const ReferenceTensor> outputs) {
  const size_t width = inputs[0].dim(-1);
  for (size_t row = 0; row < inputs[0].numbers.size(); row += width) {
    const auto x = inputs[0].numbers.subspan(row, width),
               y = outputs[0].numbers.subspan(row, width);
    const double largest = *std::ranges::max_element(x);
    double sum = 0.0;
    for (size_t i = 0; i < width; ++i) sum += y[i] = std::exp(x[i] - largest);
    for (double& value : y) value /= sum;
  }
}

void Gradient(GradientRule& rule) {
  rule.Contribute("softmax_grad", {}, {rule.output(0), rule.output_gradient(0)}, {0});
}

std::vector<OpCase> Cases() {
  return {{"f32", {}, {F32({2, 3, 19})}, {}},
          {"bf16", {}, {BF16({3, 67})}, {}},
          {"wide", {}, {F32({2, 1031})}, {}},
          {"vector", {}, {F32({3})}, {}},
          {"pair", {}, {F32({5, 2})}, {}}};
}

std::vector<TensorType> GradInfer(const Attributes&, std::span<const TensorType> inputs) {
  CheckOperands("softmax_grad", inputs,
                {{"y", kActivation, AtLeast(1)}, {"dy", kActivation, AtLeast(1)}});
  CheckType("softmax_grad", "dy", inputs[1], inputs[0]);
  return {inputs[0]};
}

void GradReference(const OpCall&, std::span<const ReferenceTensor> inputs,
                   std::span<const ReferenceTensor> outputs) {
  const size_t width = inputs[0].dim(-1);
  const auto y = inputs[0].numbers, dy = inputs[1].numbers, dx = outputs[0].numbers;
  for (size_t row = 0; row < y.size(); row += width) {
    double mean = 0.0;
    for (size_t i = row; i < row + width; ++i) mean += y[i] * dy[i];
    for (size_t i = row; i < row + width; ++i) dx[i] = y[i] * (dy[i] - mean);
  }
}

std::vector<OpCase> GradCases() {
  return {{"f32", {}, {F32({2, 3, 19}), F32({2, 3, 19})}, {}},
          {"bf16", {}, {BF16({3, 267}), BF16({3, 267})}, {}},
          {"one", {}, {F32({5, 1}), F32({5, 1})}, {}}};
}

}  // namespace

Op op_softmax() {
  return {.infer = Infer, .reference = Reference, .gradient = Gradient, .cases = Cases};
}

Op op_softmax_grad() {
  return {.infer = GradInfer, .reference = GradReference, .cases = GradCases};
}

}  // namespace syntra
