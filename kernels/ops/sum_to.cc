// SPDX-License-Identifier: Apache-2.0
// y = the sum of x factor? over axes, in f32 and a fixed order: over those that are missing or of
// extent 1 in {shape}. It undoes what broadcast_to does: x has {shape} broadcast as in NumPy, and
// so is the factor to x. x, factor? are A or f32, y has the type {dtype}. Attributes {shape,
// dtype}. Backward: dx = broadcast_to of dy times factor, dfactor = sum_to of x dy.
#include "kernels/ops/broadcast.h"

namespace syntra {
namespace {

std::vector<TensorType> Infer(const Attributes& attributes, std::span<const TensorType> inputs) {
  CheckOperands("sum_to", inputs,
                {{"x", kActivation, kAnyRank}, {"factor", kActivation, kAnyRank, true}});
  const TensorType y = TypeIn(attributes);
  const Shape& x = inputs[0].shape;
  SYNTRA_CHECK(Broadcasts(y.shape, x), "sum_to of {} to {}", ToString(x), ToString(y.shape));
  SYNTRA_CHECK(!inputs[1].present() || Broadcasts(inputs[1].shape, x),
               "sum_to of {} by a factor {}", ToString(x), ToString(inputs[1].shape));
  return {y};
}

void Reference(const OpCall&, std::span<const ReferenceTensor> inputs,
               std::span<const ReferenceTensor> outputs) {
  const Shape& shape = inputs[0].type.shape;
  const auto x = inputs[0].numbers, factor = inputs[1].numbers, y = outputs[0].numbers;
  ForEachBroadcast(
      shape, outputs[0].type.shape, inputs[1].type.shape,
      [&](int64_t i, int64_t j, int64_t k) { y[j] += factor.empty() ? x[i] : x[i] * factor[k]; });
}

void Gradient(GradientRule& rule) {
  const TensorType x = rule.recorder().TypeOf(rule.input(0));
  const Value dy = rule.output_gradient(0), factor = rule.input(1);
  rule.Contribute("broadcast_to", TypeAttributes(x), {dy, factor}, {0});
  if (!factor) return;
  rule.Contribute("sum_to", TypeAttributes(rule.recorder().TypeOf(factor)), {rule.input(0), dy},
                  {1});
}

std::vector<OpCase> Cases() {
  return {{"bias", TypeAttributes(F32({67})), {BF16({3, 101, 67}), None()}, {}},
          {"rows", TypeAttributes(F32({2, 5, 1})), {F32({2, 5, 131}), None()}, {}},
          {"all", TypeAttributes(F32({1})), {BF16({2, 5, 19}), F32({2, 5, 19})}, {}},
          {"middle", TypeAttributes(BF16({3, 1, 19})), {BF16({3, 7, 19}), F32({7, 1})}, {}},
          {"ends", TypeAttributes(F32({1, 5, 1})), {F32({4, 5, 7}), BF16({4, 1, 7})}, {}},
          {"nothing", TypeAttributes(F32({5, 19})), {BF16({5, 19}), F32({19})}, {}}};
}

}  // namespace

Op op_sum_to() {
  return {.infer = Infer,
          .reference = Reference,
          .gradient = Gradient,
          .cases = Cases,
          .elementwise = true};
}

}  // namespace syntra
