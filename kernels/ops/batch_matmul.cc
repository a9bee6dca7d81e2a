// SPDX-License-Identifier: Apache-2.0
// A product for each index of the leading axes: [.., M, K] [.., K, N] -> [.., M, N] of type
// {dtype}; a is stored as [.., K, M] with transpose_a, b as [.., N, K] with transpose_b, not both.
// a, b A. Attributes {transpose_a, transpose_b, dtype}.
#include <algorithm>
#include <array>

#include "kernels/matmul_call.h"
#include "kernels/ops/shapes.h"

namespace syntra {
namespace {

std::vector<TensorType> Infer(const Attributes& attributes, std::span<const TensorType> inputs) {
  CheckOperands("batch_matmul", inputs,
                {{"a", kActivation, AtLeast(2)}, {"b", kActivation, AtLeast(2)}});
  const Shape &a = inputs[0].shape, &b = inputs[1].shape;
  const bool transpose_a = attributes.Flag("transpose_a");
  const bool transpose_b = attributes.Flag("transpose_b");
  const int leading = a.rank() - 2;
  SYNTRA_CHECK(a.rank() == b.rank() && !(transpose_a && transpose_b) &&
                   std::ranges::equal(a.dims().first(leading), b.dims().first(leading)) &&
                   a[transpose_a ? -2 : -1] == b[transpose_b ? -1 : -2],
               "batch_matmul of {} and {}{}{}", ToString(a), ToString(b),
               transpose_a ? ", transpose_a" : "", transpose_b ? ", transpose_b" : "");
  const int64_t rows = a[transpose_a ? -1 : -2], columns = b[transpose_b ? -2 : -1];
  return {{ResultDType(attributes), a.With(-2, rows).With(-1, columns)}};
}

// The matrix of a group.
ReferenceTensor MatrixOf(const ReferenceTensor& tensor, int64_t group) {
  const Shape shape = {tensor.dim(-2), tensor.dim(-1)};
  return {
      {tensor.type.dtype, shape}, tensor.numbers.subspan(group * shape.size(), shape.size()), {}};
}

void Reference(const OpCall& call, std::span<const ReferenceTensor> inputs,
               std::span<const ReferenceTensor> outputs) {
  for (int64_t group = 0; group < MatmulCall::OfBatch(call).groups; ++group) {
    const std::array operands{MatrixOf(inputs[0], group), MatrixOf(inputs[1], group)};
    const ReferenceTensor c = MatrixOf(outputs[0], group);
    GetOp("matmul").reference(call, operands, std::span(&c, 1));
  }
}

void Gradient(GradientRule& rule) {
  const bool transpose_a = rule.attributes().Flag("transpose_a");
  const bool transpose_b = rule.attributes().Flag("transpose_b");
  const Value a = rule.input(0), b = rule.input(1), dc = rule.output_gradient(0);
  const auto contribute = [&](int i, Value left, bool transpose_left, Value right,
                              bool transpose_right) {
    const DType dtype = rule.recorder().TypeOf(rule.input(i)).dtype;
    rule.Contribute("batch_matmul",
                    {{"transpose_a", transpose_left},
                     {"transpose_b", transpose_right},
                     {"dtype", DTypeName(dtype)}},
                    {left, right}, {i});
  };
  if (transpose_a) {
    contribute(0, b, false, dc, true);
  } else {
    contribute(0, dc, false, b, !transpose_b);
  }
  if (transpose_b) {
    contribute(1, dc, true, a, false);
  } else {
    contribute(1, a, !transpose_a, dc, false);
  }
}

double Flops(const OpCall& call) {
  const MatmulCall matmul = MatmulCall::OfBatch(call);
  const GemmProblem& p = matmul.problem;
  return 2.0 * static_cast<double>(matmul.groups * p.m) * static_cast<double>(p.k * p.n);
}

std::vector<OpCase> Cases() {
  const auto with = [](bool transpose_a, bool transpose_b, const char* dtype) {
    return Attributes{{"transpose_a", transpose_a}, {"transpose_b", transpose_b}, {"dtype", dtype}};
  };
  return {{"f32", with(false, false, "f32"), {F32({2, 3, 5, 19}), F32({2, 3, 19, 7})}, {}},
          {"bf16", with(false, false, "bf16"), {BF16({3, 5, 19}), BF16({3, 19, 7})}, {}},
          {"left", with(true, false, "f32"), {BF16({2, 19, 5}), F32({2, 19, 67})}, {}},
          {"right", with(false, true, "bf16"), {BF16({2, 3, 5, 7}), BF16({2, 3, 11, 7})}, {}},
          {"row", with(false, true, "f32"), {F32({4, 1, 19}), F32({4, 1, 19})}, {}}};
}

}  // namespace

Op op_batch_matmul() {
  return {
      .infer = Infer, .reference = Reference, .gradient = Gradient, .cases = Cases, .flops = Flops};
}

}  // namespace syntra
