// SPDX-License-Identifier: Apache-2.0
// y[i] = sum of x[j] for j <= i along `axis`, in f32; for j < i if exclusive, for j >= i (or j > i)
// if reverse. x A of any rank. Backward: the same in the other direction.
// Attributes {axis, reverse, exclusive}.
#include "kernels/ops/axes.h"
#include "kernels/strides.h"

namespace syntra {
namespace {

std::vector<TensorType> Infer(const Attributes& attributes, std::span<const TensorType> inputs) {
  CheckOperands("cumulative_sum", inputs, {{"x", kActivation, kAnyRank}});
  AxisIn("cumulative_sum", attributes, inputs[0]);
  return {inputs[0]};
}

void Reference(const OpCall& call, std::span<const ReferenceTensor> inputs,
               std::span<const ReferenceTensor> outputs) {
  const int axis = AxisIn("cumulative_sum", call.attributes, inputs[0].type);
  const bool reverse = call.attributes.Flag("reverse");
  const bool exclusive = call.attributes.Flag("exclusive");
  const auto x = inputs[0].numbers, y = outputs[0].numbers;
  const int64_t length = inputs[0].dim(axis);
  const int64_t stride = DenseStrides(inputs[0].type.shape)[axis];
  for (int64_t i = 0; i < std::ssize(x); ++i) {
    const int64_t at = i / stride % length;
    const int64_t end = reverse ? length - 1 : 0, step = reverse ? 1 : -1;
    y[i] = exclusive ? 0.0 : x[i];
    for (int64_t j = at; j != end; j += step) y[i] += x[i + (j + step - at) * stride];
  }
}

void Gradient(GradientRule& rule) {
  const Attributes& attributes = rule.attributes();
  rule.Contribute("cumulative_sum",
                  {{"axis", attributes.Int("axis")},
                   {"reverse", !attributes.Flag("reverse")},
                   {"exclusive", attributes.Flag("exclusive")}},
                  {rule.output_gradient(0)}, {0});
}

std::vector<OpCase> Cases() {
  const auto with = [](int64_t axis, bool reverse, bool exclusive) {
    return Attributes{{"axis", axis}, {"reverse", reverse}, {"exclusive", exclusive}};
  };
  return {{"middle", with(1, false, false), {F32({2, 7, 19})}, {}},
          {"reverse", with(1, true, false), {BF16({2, 13, 67})}, {}},
          {"last", with(2, false, true), {F32({2, 3, 37})}, {}},
          {"last_reverse", with(1, true, true), {BF16({5, 70})}, {}}};
}

}  // namespace

Op op_cumulative_sum() {
  return {.infer = Infer, .reference = Reference, .gradient = Gradient, .cases = Cases};
}

}  // namespace syntra
