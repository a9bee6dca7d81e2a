// SPDX-License-Identifier: Apache-2.0
// y = a b elementwise, broadcast as in NumPy: axes are aligned at the last one, and axes that are
// missing or of extent 1 repeat. a and b are A or f32; y is bf16 if one of them is. Backward:
// sum_to of dy times the other operand.
#include "kernels/ops/broadcast.h"

namespace syntra {
namespace {

std::vector<TensorType> Infer(const Attributes&, std::span<const TensorType> inputs) {
  return InferBroadcast("multiply", inputs);
}

void Reference(const OpCall&, std::span<const ReferenceTensor> inputs,
               std::span<const ReferenceTensor> outputs) {
  const auto a = inputs[0].numbers, b = inputs[1].numbers, y = outputs[0].numbers;
  ForEachBroadcast(outputs[0].type.shape, inputs[0].type.shape, inputs[1].type.shape,
                   [&](int64_t i, int64_t j, int64_t k) { y[i] = a[j] * b[k]; });
}

void Gradient(GradientRule& rule) {
  ContributeSum(rule, 0, rule.input(1));
  ContributeSum(rule, 1, rule.input(0));
}

}  // namespace

Op op_multiply() {
  return {.infer = Infer,
          .reference = Reference,
          .gradient = Gradient,
          .cases = BroadcastCases,
          .elementwise = true};
}

}  // namespace syntra
