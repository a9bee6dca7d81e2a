// SPDX-License-Identifier: Apache-2.0
// The same map over positions for every example: y[b, t, g, :] = sum_s w_g[t, s] x[b, s, g, :].
//   w A or f32 [T', T], or [G, T', T] for G groups of columns; with transpose [.., T, T'];
//   x A [B, T, D] with columns in G contiguous groups -> y A [B, T', D].
// Attributes {transpose}. Mixers with a matrix over positions use it.
// shared_matmul_grad: [.., T', T], f32 of {shape} = sum over b of a[b, :, g] c[b, :, g]^T, the
// gradient of w, with a [B, T', D] and c [B, T, D].
#include <array>

#include "kernels/ops/shapes.h"
#include "kernels/shared_matmul_call.h"

namespace syntra {
namespace {

// Calls visit(w index, x index, y index) for every multiply of the product.
template <typename Visit>
void ForEachProduct(const SharedMatmulCall& e, const Visit& visit) {
  for (int64_t b = 0; b < e.batch; ++b) {
    for (int64_t t = 0; t < e.to; ++t) {
      for (int64_t s = 0; s < e.from; ++s) {
        for (int64_t column = 0; column < e.width(); ++column) {
          const int64_t w = e.transpose ? s * e.to + t : t * e.from + s;
          visit(column / e.columns * e.to * e.from + w, (b * e.from + s) * e.width() + column,
                (b * e.to + t) * e.width() + column);
        }
      }
    }
  }
}

std::vector<TensorType> Infer(const Attributes& attributes, std::span<const TensorType> inputs) {
  CheckOperands("shared_matmul", inputs, {{"w", kActivation, kAnyRank}, {"x", kActivation, 3}});
  const Shape &w = inputs[0].shape, &x = inputs[1].shape;
  const bool transpose = attributes.Flag("transpose");
  SYNTRA_CHECK(
      (w.rank() == 2 || (w.rank() == 3 && x[2] % w[0] == 0)) && w[transpose ? -2 : -1] == x[1],
      "shared_matmul of {}{} and {}", ToString(w), transpose ? ", transposed," : "", ToString(x));
  return {{inputs[1].dtype, {x[0], w[transpose ? -1 : -2], x[2]}}};
}

void Reference(const OpCall& call, std::span<const ReferenceTensor> inputs,
               std::span<const ReferenceTensor> outputs) {
  const auto w = inputs[0].numbers, x = inputs[1].numbers, y = outputs[0].numbers;
  ForEachProduct(SharedMatmulCall::Of(call),
                 [&](int64_t i, int64_t j, int64_t k) { y[k] += w[i] * x[j]; });
}

void Gradient(GradientRule& rule) {
  const TensorType w = rule.recorder().TypeOf(rule.input(0));
  const Value x = rule.input(1), dy = rule.output_gradient(0);
  const bool transpose = rule.attributes().Flag("transpose");
  rule.Contribute("shared_matmul", {{"transpose", !transpose}}, {rule.input(0), dy}, {1});
  if (!rule.wants(0)) return;
  const Attributes shape = {{"shape", IntegersOf(w.shape)}};
  const std::vector<Value> operands = transpose ? std::vector{x, dy} : std::vector{dy, x};
  if (w.dtype == DType::kF32) return rule.Contribute("shared_matmul_grad", shape, operands, {0});
  const Value sum = rule.recorder().Record("shared_matmul_grad", shape, operands).at(0);
  rule.Contribute("copy", {{"dtype", DTypeName(w.dtype)}}, {sum}, {0});
}

double Flops(const OpCall& call) {
  const SharedMatmulCall e = SharedMatmulCall::Of(call);
  return 2.0 * static_cast<double>(e.to * e.from) * static_cast<double>(e.batch * e.width());
}

std::vector<OpCase> Cases() {
  const auto with = [](bool transpose) { return Attributes{{"transpose", transpose}}; };
  return {{"f32", with(false), {F32({5, 7}), F32({3, 7, 19})}, {}},
          {"many_examples", with(false), {F32({2, 3}), F32({134, 3, 2})}, {}},
          {"transposed", with(true), {F32({7, 5}), BF16({3, 7, 19})}, {}},
          {"groups", with(false), {BF16({3, 5, 7}), BF16({2, 7, 33})}, {}},
          {"groups_transposed", with(true), {F32({2, 7, 1}), F32({2, 7, 10})}, {}}};
}

std::vector<TensorType> GradInfer(const Attributes& attributes,
                                  std::span<const TensorType> inputs) {
  CheckOperands("shared_matmul_grad", inputs, {{"a", kActivation, 3}, {"c", kActivation, 3}});
  const TensorType w = F32(Shape(attributes.List("shape")));
  const TensorType a = Infer({{"transpose", false}}, std::array{w, inputs[1]})[0];
  CheckType("shared_matmul_grad", "a", inputs[0], a);
  return {w};
}

void GradReference(const OpCall& call, std::span<const ReferenceTensor> inputs,
                   std::span<const ReferenceTensor> outputs) {
  const auto a = inputs[0].numbers, c = inputs[1].numbers, w = outputs[0].numbers;
  ForEachProduct(SharedMatmulCall::OfGrad(call),
                 [&](int64_t i, int64_t j, int64_t k) { w[i] += a[k] * c[j]; });
}

double GradFlops(const OpCall& call) {
  const SharedMatmulCall e = SharedMatmulCall::OfGrad(call);
  return 2.0 * static_cast<double>(e.to * e.from) * static_cast<double>(e.batch * e.width());
}

}  // namespace

Op op_shared_matmul() {
  return {
      .infer = Infer, .reference = Reference, .gradient = Gradient, .cases = Cases, .flops = Flops};
}

// Its cases are the gradients of shared_matmul's.
Op op_shared_matmul_grad() {
  return {.infer = GradInfer, .reference = GradReference, .flops = GradFlops};
}

}  // namespace syntra
