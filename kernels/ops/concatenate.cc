// SPDX-License-Identifier: Apache-2.0
// Any number of tensors one after the other along `axis`: A, all of one type but for that extent.
// Attributes {axis}. Backward: slices.
#include "kernels/ops/axes.h"
#include "kernels/pieces.h"

namespace syntra {
namespace {

std::vector<TensorType> Infer(const Attributes& attributes, std::span<const TensorType> inputs) {
  SYNTRA_CHECK(!inputs.empty(), "concatenate of nothing");
  const int axis = AxisIn("concatenate", attributes, inputs[0]);
  int64_t extent = 0;
  for (const TensorType& input : inputs) {
    SYNTRA_CHECK(HasKind(input, kActivation) && input.dtype == inputs[0].dtype &&
                     input.shape.rank() == inputs[0].shape.rank() &&
                     input.shape.With(axis, 1) == inputs[0].shape.With(axis, 1),
                 "concatenate of {} and {} along axis {}", ToString(inputs[0]), ToString(input),
                 axis);
    extent += input.shape[axis];
  }
  return {{inputs[0].dtype, inputs[0].shape.With(axis, extent)}};
}

void Reference(const OpCall& call, std::span<const ReferenceTensor> inputs,
               std::span<const ReferenceTensor> outputs) {
  CopyPieces(ConcatenatePieces(call), inputs, outputs[0]);
}

void Gradient(GradientRule& rule) {
  const int64_t axis = rule.attributes().Int("axis");
  int64_t begin = 0;
  for (int i = 0; i < rule.inputs(); ++i) {
    const int64_t length = rule.recorder().TypeOf(rule.input(i)).shape[static_cast<int>(axis)];
    rule.Contribute("slice", {{"axis", axis}, {"begin", begin}, {"length", length}},
                    {rule.output_gradient(0)}, {i});
    begin += length;
  }
}

std::vector<OpCase> Cases() {
  return {{"first", {{"axis", 0}}, {F32({2, 19}), F32({1, 19})}, {}},
          {"middle", {{"axis", 1}}, {BF16({3, 4, 67}), BF16({3, 1, 67}), BF16({3, 2, 67})}, {}},
          {"last", {{"axis", 2}}, {F32({2, 3, 11}), F32({2, 3, 8})}, {}},
          {"columns", {{"axis", 1}}, {F32({5, 1}), F32({5, 1})}, {}},
          {"one", {{"axis", 1}}, {F32({2, 5})}, {}}};
}

}  // namespace

Op op_concatenate() {
  return {.infer = Infer, .reference = Reference, .gradient = Gradient, .cases = Cases};
}

}  // namespace syntra
