// SPDX-License-Identifier: Apache-2.0
// The same linear map for each head of a row: y[.., h, :] = x[.., h, :] W (or W_h).
//   x A [B, T, H*F], weight f32 [F, N] or [H, F, N] -> A [B, T, H*N]. Attributes {heads}.
// Factorized dense attention uses it for its output maps (Synthesizer, Tay et al. 2021,
// section 3.1).
#include "kernels/head_matmul_call.h"
#include "kernels/ops/shapes.h"

namespace syntra {
namespace {

std::vector<TensorType> Infer(const Attributes& attributes, std::span<const TensorType> in) {
  CheckOperands("head_matmul", in, {{"x", kActivation, 3}, {"weight", kParameter, kAnyRank}});
  const Shape &x = in[0].shape, &weight = in[1].shape;
  const int64_t heads = attributes.Int("heads");
  SYNTRA_CHECK((weight.rank() == 2 || (weight.rank() == 3 && weight[0] == heads)) &&
                   x[2] == heads * weight[-2],
               "head_matmul of {} in {} heads by {}", ToString(x), heads, ToString(weight));
  return {{in[0].dtype, {x[0], x[1], heads * weight[-1]}}};
}

// Calls visit(x index, weight index, y index) for every multiply of the product.
template <typename Visit>
void ForEachProduct(const HeadMatmulCall& e, const Visit& visit) {
  for (int64_t row = 0; row < e.rows; ++row) {
    for (int64_t h = 0; h < e.heads; ++h) {
      for (int64_t f = 0; f < e.in; ++f) {
        const int64_t x = (row * e.heads + h) * e.in + f;
        const int64_t w = ((e.shared ? 0 : h) * e.in + f) * e.out;
        const int64_t y = (row * e.heads + h) * e.out;
        for (int64_t n = 0; n < e.out; ++n) visit(x, w + n, y + n);
      }
    }
  }
}

void Reference(const OpCall& call, std::span<const ReferenceTensor> in,
               std::span<const ReferenceTensor> out) {
  ForEachProduct(HeadMatmulCall::Of(call), [&](int64_t x, int64_t w, int64_t y) {
    out[0].numbers[y] += in[0].numbers[x] * in[1].numbers[w];
  });
}

std::vector<TensorType> InferGradient(const Attributes& attributes,
                                      std::span<const TensorType> in) {
  CheckOperands("head_matmul_grad", in,
                {{"x", kActivation, 3}, {"weight", kParameter, kAnyRank}, {"dy", kActivation, 3}});
  CheckType("head_matmul_grad", "dy", in[2], Infer(attributes, in.first(2))[0]);
  return {in[0], in[1]};
}

void ReferenceGradient(const OpCall& call, std::span<const ReferenceTensor> in,
                       std::span<const ReferenceTensor> out) {
  ForEachProduct(HeadMatmulCall::Of(call), [&](int64_t x, int64_t w, int64_t y) {
    if (out[0].present()) out[0].numbers[x] += in[2].numbers[y] * in[1].numbers[w];
    if (out[1].present()) out[1].numbers[w] += in[2].numbers[y] * in[0].numbers[x];
  });
}

void Gradient(GradientRule& rule) {
  rule.Contribute("head_matmul_grad", rule.attributes(),
                  {rule.input(0), rule.input(1), rule.output_gradient(0)}, {0, 1});
}

double Flops(const OpCall& call) {
  const HeadMatmulCall e = HeadMatmulCall::Of(call);
  return 2.0 * static_cast<double>(e.rows * e.heads * e.in * e.out);
}

double GradientFlops(const OpCall& call) {
  return static_cast<double>(call.outputs[0].present() + call.outputs[1].present()) * Flops(call);
}

std::vector<OpCase> Cases() {
  const auto make = [](const char* name, DType dtype, Shape weight) {
    return OpCase{name, {{"heads", int64_t{3}}}, {{dtype, {2, 5, 12}}, {DType::kF32, weight}}, {}};
  };
  return {make("shared", DType::kF32, {4, 7}), make("per_head", DType::kF32, {3, 4, 7}),
          make("shared_bf16", DType::kBF16, {4, 7}),
          make("per_head_bf16", DType::kBF16, {3, 4, 7})};
}

std::vector<OpCase> GradientCases() {
  std::vector<OpCase> cases = Cases();
  for (OpCase& c : cases) c.inputs.push_back({c.inputs[0].dtype, {2, 5, 21}});
  return cases;
}

}  // namespace

Op op_head_matmul() {
  return {.infer = &Infer,
          .reference = &Reference,
          .gradient = &Gradient,
          .cases = &Cases,
          .flops = &Flops};
}

Op op_head_matmul_grad() {
  return {.infer = &InferGradient,
          .reference = &ReferenceGradient,
          .cases = &GradientCases,
          .flops = &GradientFlops};
}

}  // namespace syntra
