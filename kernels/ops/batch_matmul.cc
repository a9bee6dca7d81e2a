// SPDX-License-Identifier: Apache-2.0
// A product for each index of the leading axes: [.., M, K] [.., K, N] -> [.., M, N] of type
// {dtype}; a is stored as [.., K, M] with transpose_a, b as [.., N, K] with transpose_b, not both.
// a, b A. Operands in the list {rows_first} (0 for a, 1 for b, 2 for the result) have their rows
// before the last leading axis, the heads: [.., M, H, K] instead of [.., H, M, K]. So the heads of
// a layer's columns are multiplied where they are.
// Attributes {transpose_a, transpose_b, dtype, rows_first}.
#include <algorithm>
#include <array>

#include "kernels/batch_matmul_call.h"
#include "kernels/ops/shapes.h"

namespace syntra {
namespace {

std::vector<TensorType> Infer(const Attributes& attributes, std::span<const TensorType> inputs) {
  CheckOperands("batch_matmul", inputs,
                {{"a", kActivation, AtLeast(2)}, {"b", kActivation, AtLeast(2)}});
  const Shape &a = inputs[0].shape, &b = inputs[1].shape;
  const bool transpose_a = attributes.Flag("transpose_a");
  const bool transpose_b = attributes.Flag("transpose_b");
  const auto left = BatchOperand::Of(attributes, 0, a), right = BatchOperand::Of(attributes, 1, b);
  const int before = std::max(a.rank() - 3, 0);
  SYNTRA_CHECK(
      a.rank() == b.rank() && !(transpose_a && transpose_b) &&
          (a.rank() > 2 || attributes.List("rows_first").empty()) && left.heads == right.heads &&
          std::ranges::equal(a.dims().first(before), b.dims().first(before)) &&
          (transpose_a ? left.rows : left.columns) == (transpose_b ? right.columns : right.rows),
      "batch_matmul of {} and {}, {}", ToString(a), ToString(b), attributes.ToString());
  const int64_t rows = transpose_a ? left.columns : left.rows;
  const Shape c = a.With(-1, transpose_b ? right.rows : right.columns);
  if (a.rank() == 2) return {{ResultDType(attributes), c.With(-2, rows)}};
  const bool result_first = HasRowsFirst(attributes, 2);
  return {{ResultDType(attributes),
           c.With(result_first ? -3 : -2, rows).With(result_first ? -2 : -3, left.heads)}};
}

// A head's matrix, which may be transposed.
struct Matrix {
  std::span<double> numbers;
  int64_t row, column;  // from one to the next

  Matrix(const ReferenceTensor& tensor, const BatchOperand& operand, int64_t outer, int64_t head,
         bool transposed)
      : numbers(
            tensor.numbers.subspan(outer * operand.outer_stride() + head * operand.head_stride())),
        row(transposed ? 1 : operand.row_stride()),
        column(transposed ? operand.row_stride() : 1) {}

  double& operator()(int64_t i, int64_t j) const { return numbers[i * row + j * column]; }
};

void Reference(const OpCall& call, std::span<const ReferenceTensor> inputs,
               std::span<const ReferenceTensor> outputs) {
  const BatchMatmulCall batch = BatchMatmulCall::Of(call);
  const GemmProblem& p = batch.problem;
  for (int64_t outer = 0; outer < batch.outer; ++outer) {
    for (int64_t head = 0; head < batch.heads(); ++head) {
      const Matrix a(inputs[0], batch.a, outer, head, p.transpose_a);
      const Matrix b(inputs[1], batch.b, outer, head, p.transpose_b);
      const Matrix c(outputs[0], batch.c, outer, head, false);
      for (int64_t i = 0; i < p.m; ++i) {
        for (int64_t k = 0; k < p.k; ++k) {
          for (int64_t j = 0; j < p.n; ++j) c(i, j) += a(i, k) * b(k, j);
        }
      }
    }
  }
}

void Gradient(GradientRule& rule) {
  const Attributes& attributes = rule.attributes();
  const bool transpose_a = attributes.Flag("transpose_a");
  const bool transpose_b = attributes.Flag("transpose_b");
  const std::array operands{rule.input(0), rule.input(1), rule.output_gradient(0)};
  // The numbers of the operands of a gradient's product: two factors and the result.
  const auto contribute = [&](int left, bool transpose_left, int right, bool transpose_right,
                              int result) {
    Attributes::Integers rows_first;
    for (int64_t i = 0; const int operand : {left, right, result}) {
      if (HasRowsFirst(attributes, operand)) rows_first.push_back(i);
      ++i;
    }
    const DType dtype = rule.recorder().TypeOf(rule.input(result)).dtype;
    rule.Contribute("batch_matmul",
                    {{"transpose_a", transpose_left},
                     {"transpose_b", transpose_right},
                     {"dtype", DTypeName(dtype)},
                     {"rows_first", rows_first}},
                    {operands[left], operands[right]}, {result});
  };
  constexpr int kA = 0, kB = 1, kC = 2;
  if (transpose_a) {
    contribute(kB, false, kC, true, kA);
  } else {
    contribute(kC, false, kB, !transpose_b, kA);
  }
  if (transpose_b) {
    contribute(kC, true, kA, false, kB);
  } else {
    contribute(kA, !transpose_a, kC, false, kB);
  }
}

double Flops(const OpCall& call) {
  const BatchMatmulCall batch = BatchMatmulCall::Of(call);
  const GemmProblem& p = batch.problem;
  return 2.0 * static_cast<double>(batch.outer * batch.heads() * p.m) *
         static_cast<double>(p.k * p.n);
}

std::vector<OpCase> Cases() {
  const auto with = [](bool transpose_a, bool transpose_b, const char* dtype,
                       Attributes::Integers rows_first = {}) {
    return Attributes{{"transpose_a", transpose_a},
                      {"transpose_b", transpose_b},
                      {"dtype", dtype},
                      {"rows_first", std::move(rows_first)}};
  };
  return {
      {"f32", with(false, false, "f32"), {F32({2, 3, 5, 19}), F32({2, 3, 19, 7})}, {}},
      {"bf16", with(false, false, "bf16"), {BF16({3, 5, 19}), BF16({3, 19, 7})}, {}},
      {"left", with(true, false, "f32"), {BF16({2, 19, 5}), F32({2, 19, 67})}, {}},
      {"right", with(false, true, "bf16"), {BF16({2, 3, 5, 7}), BF16({2, 3, 11, 7})}, {}},
      {"row", with(false, true, "f32"), {F32({4, 1, 19}), F32({4, 1, 19})}, {}},
      {"heads", with(false, true, "f32", {0, 1}), {F32({2, 5, 3, 7}), F32({2, 11, 3, 7})}, {}},
      {"heads_left", with(true, false, "f32", {0, 1}), {BF16({5, 3, 8}), BF16({5, 3, 16})}, {}},
      {"heads_result", with(false, false, "bf16", {0, 2}), {BF16({9, 4, 7}), BF16({4, 7, 5})}, {}},
      {"heads_last", with(false, false, "f32", {1, 2}), {F32({2, 4, 9, 7}), F32({2, 7, 4, 1})}, {}},
      {"heads_all",
       with(true, false, "f32", {0, 1, 2}),
       {F32({1, 6, 2, 3}), F32({1, 6, 2, 8})},
       {}},
  };
}

}  // namespace

Op op_batch_matmul() {
  return {
      .infer = Infer, .reference = Reference, .gradient = Gradient, .cases = Cases, .flops = Flops};
}

}  // namespace syntra
