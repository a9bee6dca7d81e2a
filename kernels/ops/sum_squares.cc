// SPDX-License-Identifier: Apache-2.0
// The sum of squares of x, any shape, f32 -> f32 [1]: the square of a gradient's norm.
#include "kernels/ops/shapes.h"

namespace syntra {
namespace {

std::vector<TensorType> Infer(const Attributes&, std::span<const TensorType> inputs) {
  CheckOperands("sum_squares", inputs, {{"x", kParameter, kAnyRank}});
  return {F32({1})};
}

void Reference(const OpCall&, std::span<const ReferenceTensor> inputs,
               std::span<const ReferenceTensor> outputs) {
  double sum = 0.0;
  for (double x : inputs[0].numbers) sum += x * x;
  outputs[0].numbers[0] = sum;
}

std::vector<OpCase> Cases() {
  return {{"vector", {}, {F32({19})}, {}},
          {"matrix", {}, {F32({67, 19})}, {}},
          {"large", {}, {F32({70001})}, {}}};
}

}  // namespace

Op op_sum_squares() { return {.infer = Infer, .reference = Reference, .cases = Cases}; }

}  // namespace syntra
