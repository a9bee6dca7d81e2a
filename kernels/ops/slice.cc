// SPDX-License-Identifier: Apache-2.0
// The entries [begin, begin + length) of x along `axis`; x A of any rank. Backward: pad.
// Attributes {axis, begin, length}.
#include "kernels/ops/axes.h"
#include "kernels/pieces.h"

namespace syntra {
namespace {

std::vector<TensorType> Infer(const Attributes& attributes, std::span<const TensorType> inputs) {
  CheckOperands("slice", inputs, {{"x", kActivation, kAnyRank}});
  const int axis = AxisIn("slice", attributes, inputs[0]);
  const int64_t begin = attributes.Int("begin"), length = attributes.Int("length");
  SYNTRA_CHECK(begin >= 0 && length >= 1 && length <= inputs[0].shape[axis] - begin,
               "slice of {}: {} entries from {} on along axis {}", ToString(inputs[0]), length,
               begin, axis);
  return {{inputs[0].dtype, inputs[0].shape.With(axis, length)}};
}

void Reference(const OpCall& call, std::span<const ReferenceTensor> inputs,
               std::span<const ReferenceTensor> outputs) {
  CopyPieces(SlicePieces(call), inputs, outputs[0]);
}

void Gradient(GradientRule& rule) {
  const int64_t axis = rule.attributes().Int("axis"), begin = rule.attributes().Int("begin");
  const int64_t full = rule.recorder().TypeOf(rule.input(0)).shape[static_cast<int>(axis)];
  const int64_t after = full - begin - rule.attributes().Int("length");
  rule.Contribute("pad", {{"axis", axis}, {"before", begin}, {"after", after}},
                  {rule.output_gradient(0)}, {0});
}

std::vector<OpCase> Cases() {
  const auto with = [](int64_t axis, int64_t begin, int64_t length) {
    return Attributes{{"axis", axis}, {"begin", begin}, {"length", length}};
  };
  return {{"first", with(0, 0, 2), {F32({5, 19})}, {}},
          {"middle", with(1, 3, 7), {F32({3, 13, 67})}, {}},
          {"last", with(2, 8, 11), {BF16({2, 3, 19})}, {}},
          {"whole", with(1, 0, 5), {F32({2, 5})}, {}}};
}

}  // namespace

Op op_slice() {
  return {.infer = Infer, .reference = Reference, .gradient = Gradient, .cases = Cases};
}

}  // namespace syntra
