// SPDX-License-Identifier: Apache-2.0
// The same elements, in the same order, in another shape: x A of any shape.
// Attributes {shape}.
#include <algorithm>

#include "kernels/ops/shapes.h"

namespace syntra {
namespace {

std::vector<TensorType> Infer(const Attributes& attributes, std::span<const TensorType> inputs) {
  CheckOperands("reshape", inputs, {{"x", kActivation, kAnyRank}});
  const Shape shape(attributes.List("shape"));
  SYNTRA_CHECK(shape.size() == inputs[0].shape.size(), "reshape of {} to {}", ToString(inputs[0]),
               ToString(shape));
  return {{inputs[0].dtype, shape}};
}

void Reference(const OpCall&, std::span<const ReferenceTensor> inputs,
               std::span<const ReferenceTensor> outputs) {
  std::ranges::copy(inputs[0].numbers, outputs[0].numbers.begin());
}

void Gradient(GradientRule& rule) {
  const Shape x = rule.recorder().TypeOf(rule.input(0)).shape;
  rule.Contribute("reshape", {{"shape", IntegersOf(x)}}, {rule.output_gradient(0)}, {0});
}

std::vector<OpCase> Cases() {
  return {{"rows", {{"shape", Attributes::Integers{4, 3, 19}}}, {F32({2, 6, 19})}, {}},
          {"heads", {{"shape", Attributes::Integers{2, 5, 3, 7}}}, {BF16({2, 5, 21})}, {}}};
}

}  // namespace

Op op_reshape() {
  return {.infer = Infer,
          .reference = Reference,
          .gradient = Gradient,
          .cases = Cases,
          .keeps_elements = true};
}

}  // namespace syntra
