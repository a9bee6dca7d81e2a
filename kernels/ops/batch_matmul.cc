// SPDX-License-Identifier: Apache-2.0
// A product for each index of the leading axes: [.., M, K] [.., K, N] -> [.., M, N] of type
// {dtype}; a is stored as [.., K, M] with transpose_a, b as [.., N, K] with transpose_b, not both.
// a, b A. Attributes {transpose_a, transpose_b, dtype}.
#include <algorithm>

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
  std::vector<int64_t> dims(a.dims().begin(), a.dims().end());
  dims[leading] = a[transpose_a ? -1 : -2];
  dims[leading + 1] = b[transpose_b ? -2 : -1];
  return {{ResultDType(attributes), Shape(dims)}};
}

void Reference(const OpCall& call, std::span<const ReferenceTensor> inputs,
               std::span<const ReferenceTensor> outputs) {
  const MatmulCall matmul = MatmulCall::OfBatch(call);
  const GemmProblem& p = matmul.problem;
  for (int64_t group = 0; group < matmul.groups; ++group) {
    const auto a = inputs[0].numbers.subspan(group * p.m * p.k, p.m * p.k);
    const auto b = inputs[1].numbers.subspan(group * p.k * p.n, p.k * p.n);
    const auto c = outputs[0].numbers.subspan(group * p.m * p.n, p.m * p.n);
    for (int64_t i = 0; i < p.m; ++i) {
      for (int64_t j = 0; j < p.n; ++j) {
        double sum = 0.0;
        for (int64_t l = 0; l < p.k; ++l) {
          sum += a[p.transpose_a ? l * p.m + i : i * p.k + l] *
                 b[p.transpose_b ? j * p.k + l : l * p.n + j];
        }
        c[i * p.n + j] = sum;
      }
    }
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
