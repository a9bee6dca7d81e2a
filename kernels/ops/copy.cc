// SPDX-License-Identifier: Apache-2.0
// y = x in the element type {dtype}: a cast, or a plain copy.
#include <algorithm>

#include "kernels/ops/shapes.h"

namespace syntra {
namespace {

std::vector<TensorType> Infer(const Attributes& attributes, std::span<const TensorType> inputs) {
  CheckOperands("copy", inputs, {{"x", kActivation, kAnyRank}});
  return {{ResultDType(attributes), inputs[0].shape}};
}

void Reference(const OpCall&, std::span<const ReferenceTensor> inputs,
               std::span<const ReferenceTensor> outputs) {
  std::ranges::copy(inputs[0].numbers, outputs[0].numbers.begin());
}

void Gradient(GradientRule& rule) {
  const DType dtype = rule.recorder().TypeOf(rule.input(0)).dtype;
  rule.Contribute("copy", {{"dtype", DTypeName(dtype)}}, {rule.output_gradient(0)}, {0});
}

std::vector<OpCase> Cases() {
  std::vector<OpCase> cases;
  for (DType from : kActivationTypes) {
    for (DType to : kActivationTypes) {
      cases.push_back({DTypeName(from) + "_to_" + DTypeName(to),
                       {{"dtype", DTypeName(to)}},
                       {{from, {3, 5, 19}}},
                       {}});
    }
  }
  return cases;
}

}  // namespace

Op op_copy() {
  return {.infer = Infer,
          .reference = Reference,
          .gradient = Gradient,
          .cases = Cases,
          .keeps_elements = true};
}

}  // namespace syntra
