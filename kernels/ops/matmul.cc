// SPDX-License-Identifier: Apache-2.0
// Matrix products c = a b. Attributes {transpose_a, transpose_b, dtype}; not both transposes.
//   [.., K] x [K, N] -> [.., N], b [N, K] with transpose_b;
//   transpose_a: [.., K]^T x [.., N] -> [K, N], over all rows (gradients of weights).
#include <algorithm>

#include "kernels/ops/shapes.h"

namespace syntra {
namespace {

// The strides of the operands: c[m, n] = sum_k a[m, k] b[k, n].
struct Walk {
  int64_t m, k, n;
  int64_t a_row, a_column, b_row, b_column;
};

// Adds the product to c.
void Multiply(const Walk& walk, std::span<const double> a, std::span<const double> b,
              std::span<double> c) {
  for (int64_t m = 0; m < walk.m; ++m) {
    for (int64_t k = 0; k < walk.k; ++k) {
      const double factor = a[m * walk.a_row + k * walk.a_column];
      for (int64_t n = 0; n < walk.n; ++n) {
        c[m * walk.n + n] += factor * b[k * walk.b_row + n * walk.b_column];
      }
    }
  }
}

bool TransposeA(const Attributes& attributes) { return attributes.Flag("transpose_a"); }
bool TransposeB(const Attributes& attributes) { return attributes.Flag("transpose_b"); }

Walk WalkOf(const Attributes& attributes, const Shape& a, const Shape& b) {
  const bool transpose_b = TransposeB(attributes);
  if (TransposeA(attributes)) {
    const int64_t m = a[-1], n = b[-1];
    return {m, a.rows(), n, 1, m, n, 1};
  }
  const int64_t k = a[-1], n = transpose_b ? b[-2] : b[-1];
  return {a.rows(), k, n, k, 1, transpose_b ? 1 : n, transpose_b ? k : 1};
}

std::vector<TensorType> Infer(const Attributes& attributes, std::span<const TensorType> inputs) {
  CheckOperands("matmul", inputs, {{"a", kActivation, AtLeast(2)}, {"b", kActivation, AtLeast(2)}});
  const Shape &a = inputs[0].shape, &b = inputs[1].shape;
  const bool transpose_a = TransposeA(attributes), transpose_b = TransposeB(attributes);
  const auto check = [&](bool agree) {
    SYNTRA_CHECK(agree, "matmul of {} and {}{}{}", ToString(a), ToString(b),
                 transpose_a ? ", transpose_a" : "", transpose_b ? ", transpose_b" : "");
  };
  if (transpose_a) {
    check(!transpose_b && a.rank() == b.rank() &&
          std::ranges::equal(a.dims().first(a.rank() - 1), b.dims().first(b.rank() - 1)));
    return {{ResultDType(attributes), {a[-1], b[-1]}}};
  }
  check(b.rank() == 2 && a[-1] == (transpose_b ? b[-1] : b[-2]));
  return {{ResultDType(attributes), a.With(-1, transpose_b ? b[-2] : b[-1])}};
}

void Reference(const OpCall& call, std::span<const ReferenceTensor> inputs,
               std::span<const ReferenceTensor> outputs) {
  Multiply(WalkOf(call.attributes, inputs[0].type.shape, inputs[1].type.shape), inputs[0].numbers,
           inputs[1].numbers, outputs[0].numbers);
}

void Gradient(GradientRule& rule) {
  const TensorType a_type = rule.recorder().TypeOf(rule.input(0));
  const TensorType b_type = rule.recorder().TypeOf(rule.input(1));
  const Value a = rule.input(0), b = rule.input(1), dc = rule.output_gradient(0);
  const auto product = [](bool transpose_a, bool transpose_b, const TensorType& of) {
    return Attributes{
        {"transpose_a", transpose_a}, {"transpose_b", transpose_b}, {"dtype", DTypeName(of.dtype)}};
  };
  if (TransposeA(rule.attributes())) {
    rule.Contribute("matmul", product(false, true, a_type), {b, dc}, {0});
    rule.Contribute("matmul", product(false, false, b_type), {a, dc}, {1});
    return;
  }
  const bool transpose_b = TransposeB(rule.attributes());
  if (const Value mask = transpose_b ? Value{} : rule.TakeMask(0)) {
    rule.Contribute("masked_matmul", product(false, true, a_type), {dc, b, mask}, {0});
  } else {
    rule.Contribute("matmul", product(false, !transpose_b, a_type), {dc, b}, {0});
  }
  const Value left = transpose_b ? dc : a, right = transpose_b ? a : dc;
  rule.Contribute("matmul", product(true, false, b_type), {left, right}, {1});
}

double Flops(const OpCall& call) {
  const Walk walk = WalkOf(call.attributes, call.inputs[0].shape, call.inputs[1].shape);
  return 2.0 * static_cast<double>(walk.m) * static_cast<double>(walk.k * walk.n);
}

std::vector<OpCase> Cases() {
  const auto with = [](bool transpose_a, bool transpose_b, const char* dtype) {
    return Attributes{{"transpose_a", transpose_a}, {"transpose_b", transpose_b}, {"dtype", dtype}};
  };
  std::vector<OpCase> cases;
  for (DType dtype : kActivationTypes) {
    const std::string name = DTypeName(dtype);
    const char* text = dtype == DType::kF32 ? "f32" : "bf16";
    const TensorType x = {dtype, {2, 5, 19}};
    cases.push_back({name, with(false, false, text), {x, F32({19, 67})}, {}});
    cases.push_back({name + "_transposed", with(false, true, text), {x, F32({67, 19})}, {}});
    cases.push_back({name + "_rows", with(true, false, "f32"), {x, {dtype, {2, 5, 13}}}, {}});
    cases.push_back(
        {name + "_flat_rows", with(true, false, text), {{dtype, {37, 19}}, {dtype, {37, 5}}}, {}});
    cases.push_back({name + "_to_f32", with(false, false, "f32"), {x, {dtype, {19, 3}}}, {}});
  }
  cases.push_back({"f32_to_bf16", with(false, false, "bf16"), {F32({5, 19}), F32({19, 3})}, {}});
  cases.push_back(
      {"f32_by_bf16", with(true, false, "f32"), {F32({2, 5, 19}), BF16({2, 5, 3})}, {}});
  return cases;
}

// Products of activations with weights are done together, unless they have so few rows that to put
// the weights side by side would take longer.
const char* Joint(const OpCall& call) {
  constexpr int64_t kFewestRows = 256;
  const bool transposes = TransposeA(call.attributes) || TransposeB(call.attributes);
  return transposes || call.inputs[0].shape.rows() < kFewestRows ? nullptr : "joint_matmul";
}

}  // namespace

Op op_matmul() {
  return {.infer = Infer,
          .reference = Reference,
          .gradient = Gradient,
          .cases = Cases,
          .flops = Flops,
          .joint = Joint};
}

}  // namespace syntra
