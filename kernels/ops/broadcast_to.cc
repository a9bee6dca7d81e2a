// SPDX-License-Identifier: Apache-2.0
// y = x factor? at {shape}: both are broadcast as in NumPy, axes aligned at the last one, those
// that are missing or of extent 1 repeated. x, factor? are A or f32, y has the type {dtype}.
// Attributes {shape, dtype}. Backward: sum_to of dy times the other operand.
#include "kernels/ops/broadcast.h"

namespace syntra {
namespace {

std::vector<TensorType> Infer(const Attributes& attributes, std::span<const TensorType> inputs) {
  CheckOperands("broadcast_to", inputs,
                {{"x", kActivation, kAnyRank}, {"factor", kActivation, kAnyRank, true}});
  const TensorType y = TypeIn(attributes);
  for (const TensorType& input : inputs) {
    SYNTRA_CHECK(!input.present() || Broadcasts(input.shape, y.shape), "broadcast_to of {} to {}",
                 ToString(input), ToString(y.shape));
  }
  return {y};
}

void Reference(const OpCall&, std::span<const ReferenceTensor> inputs,
               std::span<const ReferenceTensor> outputs) {
  const auto x = inputs[0].numbers, factor = inputs[1].numbers, y = outputs[0].numbers;
  ForEachBroadcast(
      outputs[0].type.shape, inputs[0].type.shape, inputs[1].type.shape,
      [&](int64_t i, int64_t j, int64_t k) { y[i] = factor.empty() ? x[j] : x[j] * factor[k]; });
}

void Gradient(GradientRule& rule) {
  ContributeSum(rule, 0, rule.input(1));
  if (rule.input(1)) ContributeSum(rule, 1, rule.input(0));
}

std::vector<OpCase> Cases() {
  return {{"row", TypeAttributes(BF16({3, 5, 67})), {F32({67}), None()}, {}},
          {"column", TypeAttributes(F32({2, 5, 19})), {BF16({2, 5, 1}), None()}, {}},
          {"scaled", TypeAttributes(F32({4, 7, 19})), {BF16({4, 1, 19}), F32({7, 1})}, {}}};
}

}  // namespace

Op op_broadcast_to() {
  return {.infer = Infer,
          .reference = Reference,
          .gradient = Gradient,
          .cases = Cases,
          .elementwise = true};
}

}  // namespace syntra
