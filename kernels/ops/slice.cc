// SPDX-License-Identifier: Apache-2.0
// The first `length` entries of x along `axis`. Backward: d in that place of a tensor whose extent
// along `axis` is `full`, zero elsewhere.
// Attributes {axis, length}, of the gradient {axis, length, full}.
#include <algorithm>

#include "kernels/ops/shapes.h"

namespace syntra {
namespace {

// Copies the leading part that two tensors have in common if they differ only along `axis`.
void CopyLeading(const ReferenceTensor& from, const ReferenceTensor& to, int axis) {
  const Shape &source = from.type.shape, &target = to.type.shape;
  int64_t inner = 1, outer = 1;
  for (int i = 0; i < axis; ++i) outer *= source[i];
  for (int i = axis + 1; i < source.rank(); ++i) inner *= source[i];
  const int64_t count = std::min(source[axis], target[axis]) * inner;
  for (int64_t i = 0; i < outer; ++i) {
    std::copy_n(from.numbers.begin() + i * source[axis] * inner, count,
                to.numbers.begin() + i * target[axis] * inner);
  }
}

TensorType WithExtent(const TensorType& type, int axis, int64_t extent) {
  std::vector<int64_t> dims(type.shape.dims().begin(), type.shape.dims().end());
  dims[axis] = extent;
  return {type.dtype, Shape(dims)};
}

int Axis(const Attributes& attributes, const TensorType& type) {
  const int64_t axis = attributes.Int("axis");
  SYNTRA_CHECK(axis >= 0 && axis < type.shape.rank(), "slice of {} along axis {}", ToString(type),
               axis);
  return static_cast<int>(axis);
}

std::vector<TensorType> Infer(const Attributes& attributes, std::span<const TensorType> inputs) {
  CheckOperands("slice", inputs, {{"x", kActivation, kAnyRank}});
  const int axis = Axis(attributes, inputs[0]);
  const int64_t length = attributes.Int("length");
  SYNTRA_CHECK(length >= 1 && length <= inputs[0].shape[axis], "slice of {} to {} along axis {}",
               ToString(inputs[0]), length, axis);
  return {WithExtent(inputs[0], axis, length)};
}

void Reference(const OpCall& call, std::span<const ReferenceTensor> inputs,
               std::span<const ReferenceTensor> outputs) {
  CopyLeading(inputs[0], outputs[0], Axis(call.attributes, inputs[0].type));
}

void Gradient(GradientRule& rule) {
  const TensorType x = rule.recorder().TypeOf(rule.input(0));
  const int axis = Axis(rule.attributes(), x);
  rule.Contribute("slice_grad",
                  {{"axis", int64_t{axis}},
                   {"length", rule.attributes().Int("length")},
                   {"full", x.shape[axis]}},
                  {rule.output_gradient(0)}, {0});
}

std::vector<OpCase> Cases() {
  const auto with = [](int64_t axis, int64_t length) {
    return Attributes{{"axis", axis}, {"length", length}};
  };
  return {{"first", with(0, 2), {F32({5, 19})}, {}},
          {"middle", with(1, 7), {F32({3, 13, 67})}, {}},
          {"last", with(2, 11), {F32({2, 3, 19})}, {}},
          {"whole", with(1, 5), {F32({2, 5})}, {}},
          {"bf16", with(1, 3), {BF16({2, 5, 19})}, {}}};
}

std::vector<TensorType> GradInfer(const Attributes& attributes,
                                  std::span<const TensorType> inputs) {
  CheckOperands("slice_grad", inputs, {{"d", kActivation, kAnyRank}});
  const int axis = Axis(attributes, inputs[0]);
  const int64_t full = attributes.Int("full");
  SYNTRA_CHECK(full >= inputs[0].shape[axis], "slice_grad of {} to {} along axis {}",
               ToString(inputs[0]), full, axis);
  return {WithExtent(inputs[0], axis, full)};
}

void GradReference(const OpCall& call, std::span<const ReferenceTensor> inputs,
                   std::span<const ReferenceTensor> outputs) {
  std::ranges::fill(outputs[0].numbers, 0.0);
  CopyLeading(inputs[0], outputs[0], Axis(call.attributes, inputs[0].type));
}

std::vector<OpCase> GradCases() {
  const auto with = [](int64_t axis, int64_t length, int64_t full) {
    return Attributes{{"axis", axis}, {"length", length}, {"full", full}};
  };
  return {{"first", with(0, 2, 5), {F32({2, 19})}, {}},
          {"middle", with(1, 7, 13), {F32({3, 7, 67})}, {}},
          {"last", with(2, 11, 19), {F32({2, 3, 11})}, {}},
          {"bf16", with(1, 3, 5), {BF16({2, 3, 19})}, {}}};
}

}  // namespace

Op op_slice() {
  return {.infer = Infer, .reference = Reference, .gradient = Gradient, .cases = Cases};
}

Op op_slice_grad() { return {.infer = GradInfer, .reference = GradReference, .cases = GradCases}; }

}  // namespace syntra
