// SPDX-License-Identifier: Apache-2.0
// x with `before` zeros before and `after` zeros after it along `axis`; x A of any rank. A shift
// by k positions pads by k and slices. Backward: slice.
// Attributes {axis, before, after}.
#include "kernels/ops/axes.h"
#include "kernels/pieces.h"

namespace syntra {
namespace {

std::vector<TensorType> Infer(const Attributes& attributes, std::span<const TensorType> inputs) {
  CheckOperands("pad", inputs, {{"x", kActivation, kAnyRank}});
  const int axis = AxisIn("pad", attributes, inputs[0]);
  const int64_t before = attributes.Int("before"), after = attributes.Int("after");
  SYNTRA_CHECK(before >= 0 && after >= 0, "pad of {} by {} and {}", ToString(inputs[0]), before,
               after);
  const Shape& x = inputs[0].shape;
  return {{inputs[0].dtype, x.With(axis, before + x[axis] + after)}};
}

void Reference(const OpCall& call, std::span<const ReferenceTensor> inputs,
               std::span<const ReferenceTensor> outputs) {
  CopyPieces(PadPieces(call), inputs, outputs[0]);
}

void Gradient(GradientRule& rule) {
  const int64_t axis = rule.attributes().Int("axis");
  const int64_t length = rule.recorder().TypeOf(rule.input(0)).shape[static_cast<int>(axis)];
  rule.Contribute("slice",
                  {{"axis", axis}, {"begin", rule.attributes().Int("before")}, {"length", length}},
                  {rule.output_gradient(0)}, {0});
}

std::vector<OpCase> Cases() {
  const auto with = [](int64_t axis, int64_t before, int64_t after) {
    return Attributes{{"axis", axis}, {"before", before}, {"after", after}};
  };
  return {{"first", with(0, 0, 3), {F32({2, 19})}, {}},
          {"middle", with(1, 3, 2), {BF16({3, 7, 67})}, {}},
          {"last", with(2, 1, 0), {F32({2, 3, 11})}, {}}};
}

}  // namespace

Op op_pad() {
  return {.infer = Infer, .reference = Reference, .gradient = Gradient, .cases = Cases};
}

}  // namespace syntra
