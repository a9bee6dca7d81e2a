// SPDX-License-Identifier: Apache-2.0
// sum_i x_i w_i: x and w of the same shape -> f32[1]. Gradient tests differentiate this scalar,
// with a random cotangent as w.
#include "kernels/op.h"

namespace syntra {
namespace {

std::vector<TensorType> Infer(const Attributes&, std::span<const TensorType> in) {
  SYNTRA_CHECK(in[0].shape == in[1].shape);
  return {{DType::kF32, {1}}};
}

void Reference(const OpCall&, std::span<const ReferenceTensor> in,
               std::span<const ReferenceTensor> out) {
  for (size_t i = 0; i < in[0].numbers.size(); ++i) {
    out[0].numbers[0] += in[0].numbers[i] * in[1].numbers[i];
  }
}

// x's gradient is w times the scalar's gradient.
void Gradient(GradientRule& rule) {
  rule.Contribute("multiply", {}, {rule.input(1), rule.output_gradient(0)}, {0});
}

std::vector<OpCase> Cases() {
  return {{"f32", {}, {{DType::kF32, {3, 5}}, {DType::kF32, {3, 5}}}, {}}};
}

}  // namespace

Op op_weighted_sum() {
  return {.infer = &Infer, .reference = &Reference, .gradient = &Gradient, .cases = &Cases};
}

}  // namespace syntra
