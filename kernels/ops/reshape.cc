// SPDX-License-Identifier: Apache-2.0
// The same elements in rows of another length: x [B, T, C] -> y [B', T', C] with B' T' = B T.
// Attributes {rows B'}.
#include <algorithm>

#include "kernels/ops/shapes.h"

namespace syntra {
namespace {

std::vector<TensorType> Infer(const Attributes& attributes, std::span<const TensorType> inputs) {
  CheckOperands("reshape", inputs, {{"x", kActivation, 3}});
  const Shape& x = inputs[0].shape;
  const int64_t rows = attributes.Int("rows");
  SYNTRA_CHECK(rows > 0 && x[0] * x[1] % rows == 0, "{} does not make {} rows", ToString(x), rows);
  return {{inputs[0].dtype, {rows, x[0] * x[1] / rows, x[2]}}};
}

void Reference(const OpCall&, std::span<const ReferenceTensor> inputs,
               std::span<const ReferenceTensor> outputs) {
  std::ranges::copy(inputs[0].numbers, outputs[0].numbers.begin());
}

void Gradient(GradientRule& rule) {
  const int64_t rows = rule.recorder().TypeOf(rule.input(0)).shape[0];
  rule.Contribute("reshape", {{"rows", rows}}, {rule.output_gradient(0)}, {0});
}

std::vector<OpCase> Cases() {
  std::vector<OpCase> cases;
  for (DType dtype : kActivationTypes) {
    cases.push_back({DTypeName(dtype), {{"rows", 4}}, {{dtype, {2, 6, 19}}}, {}});
    cases.push_back({DTypeName(dtype) + "_longer", {{"rows", 3}}, {{dtype, {6, 1, 67}}}, {}});
  }
  return cases;
}

}  // namespace

Op op_reshape() {
  return {.infer = Infer, .reference = Reference, .gradient = Gradient, .cases = Cases};
}

}  // namespace syntra
