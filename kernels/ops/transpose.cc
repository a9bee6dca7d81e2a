// SPDX-License-Identifier: Apache-2.0
// y with the axes of x in another order: axis i of y is axis axes[i] of x; x A of any rank.
// Attributes {axes}. Backward: the inverse transposition.
#include <algorithm>

#include "kernels/ops/axes.h"
#include "kernels/pieces.h"

namespace syntra {
namespace {

std::vector<TensorType> Infer(const Attributes& attributes, std::span<const TensorType> inputs) {
  CheckOperands("transpose", inputs, {{"x", kActivation, kAnyRank}});
  const Shape& x = inputs[0].shape;
  const Attributes::Integers& axes = attributes.List("axes");
  Attributes::Integers sorted = axes, dims;
  std::ranges::sort(sorted);
  for (int64_t i = 0; i < std::ssize(sorted); ++i) {
    SYNTRA_CHECK(sorted[i] == i, "transpose of {} by {}", ToString(x), attributes.ToString());
  }
  SYNTRA_CHECK(std::ssize(axes) == x.rank(), "transpose of {} by {}", ToString(x),
               attributes.ToString());
  for (const int64_t axis : axes) dims.push_back(x[static_cast<int>(axis)]);
  return {{inputs[0].dtype, Shape(dims)}};
}

void Reference(const OpCall& call, std::span<const ReferenceTensor> inputs,
               std::span<const ReferenceTensor> outputs) {
  CopyPieces(TransposePieces(call), inputs, outputs[0]);
}

void Gradient(GradientRule& rule) {
  const Attributes::Integers& axes = rule.attributes().List("axes");
  Attributes::Integers inverse(axes.size());
  for (int64_t i = 0; i < std::ssize(axes); ++i) inverse[axes[i]] = i;
  rule.Contribute("transpose", {{"axes", inverse}}, {rule.output_gradient(0)}, {0});
}

std::vector<OpCase> Cases() {
  const auto by = [](Attributes::Integers axes) { return Attributes{{"axes", std::move(axes)}}; };
  return {{"matrix", by({1, 0}), {F32({37, 19})}, {}},
          {"heads", by({0, 2, 1, 3}), {BF16({2, 5, 3, 19})}, {}},
          {"columns", by({0, 2, 1}), {BF16({2, 7, 67})}, {}},
          {"cycle", by({2, 0, 1}), {F32({3, 5, 11})}, {}}};
}

}  // namespace

Op op_transpose() {
  return {.infer = Infer, .reference = Reference, .gradient = Gradient, .cases = Cases};
}

}  // namespace syntra
