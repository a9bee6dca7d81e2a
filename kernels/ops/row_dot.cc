// SPDX-License-Identifier: Apache-2.0
// Dot products of rows: a, b [H, N, R] f32 -> y [H, 1, N], y[h, 0, n] = sum_r a[h,n,r] b[h,n,r]
// (the diagonal of a b^T). Backward: da = d b, db = d a.
#include "kernels/ops/shapes.h"

namespace syntra {
namespace {

std::vector<TensorType> Infer(const Attributes&, std::span<const TensorType> inputs) {
  CheckOperands("row_dot", inputs, {{"a", kParameter, 3}, {"b", kParameter, 3}});
  CheckShape("row_dot", "b", inputs[1], inputs[0].shape);
  return {F32({inputs[0].shape[0], 1, inputs[0].shape[1]})};
}

void Reference(const OpCall&, std::span<const ReferenceTensor> inputs,
               std::span<const ReferenceTensor> outputs) {
  const auto a = inputs[0].numbers, b = inputs[1].numbers;
  const int64_t rank = inputs[0].dim(2);
  for (int64_t row = 0; row < inputs[0].type.shape.rows(); ++row) {
    double sum = 0.0;
    for (int64_t i = row * rank; i < (row + 1) * rank; ++i) sum += a[i] * b[i];
    outputs[0].numbers[row] = sum;
  }
}

void Gradient(GradientRule& rule) {
  rule.Contribute("row_dot_grad", {}, {rule.input(0), rule.input(1), rule.output_gradient(0)},
                  {0, 1});
}

std::vector<OpCase> Cases() {
  return {{"small", {}, {F32({2, 5, 3}), F32({2, 5, 3})}, {}},
          {"wide", {}, {F32({3, 19, 67}), F32({3, 19, 67})}, {}}};
}

std::vector<TensorType> GradInfer(const Attributes&, std::span<const TensorType> inputs) {
  CheckOperands("row_dot_grad", inputs,
                {{"a", kParameter, 3}, {"b", kParameter, 3}, {"d", kParameter, 3}});
  CheckShape("row_dot_grad", "b", inputs[1], inputs[0].shape);
  CheckShape("row_dot_grad", "d", inputs[2], {inputs[0].shape[0], 1, inputs[0].shape[1]});
  return {inputs[0], inputs[1]};
}

void GradReference(const OpCall&, std::span<const ReferenceTensor> inputs,
                   std::span<const ReferenceTensor> outputs) {
  const auto a = inputs[0].numbers, b = inputs[1].numbers, d = inputs[2].numbers;
  const size_t rank = static_cast<size_t>(inputs[0].dim(2));
  for (size_t i = 0; i < a.size(); ++i) {
    if (outputs[0].present()) outputs[0].numbers[i] = d[i / rank] * b[i];
    if (outputs[1].present()) outputs[1].numbers[i] = d[i / rank] * a[i];
  }
}

std::vector<OpCase> GradCases() {
  return {{"small", {}, {F32({2, 5, 3}), F32({2, 5, 3}), F32({2, 1, 5})}, {}},
          {"wide", {}, {F32({3, 19, 67}), F32({3, 19, 67}), F32({3, 1, 19})}, {}}};
}

}  // namespace

Op op_row_dot() {
  return {.infer = Infer, .reference = Reference, .gradient = Gradient, .cases = Cases};
}

Op op_row_dot_grad() {
  return {.infer = GradInfer, .reference = GradReference, .cases = GradCases};
}

}  // namespace syntra
