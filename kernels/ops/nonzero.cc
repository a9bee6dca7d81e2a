// SPDX-License-Identifier: Apache-2.0
// y = 1 where x is not 0, else 0: x i32 of any shape, y of the type {dtype}. Of segments this is
// the mask of what is not padding. No gradient. Attributes {dtype}.
#include "kernels/ops/shapes.h"

namespace syntra {
namespace {

std::vector<TensorType> Infer(const Attributes& attributes, std::span<const TensorType> inputs) {
  CheckOperands("nonzero", inputs, {{"x", kInteger, kAnyRank}});
  return {{ResultDType(attributes), inputs[0].shape}};
}

void Reference(const OpCall&, std::span<const ReferenceTensor> inputs,
               std::span<const ReferenceTensor> outputs) {
  const auto x = inputs[0].integers;
  for (size_t i = 0; i < x.size(); ++i) outputs[0].numbers[i] = x[i] != 0 ? 1.0 : 0.0;
}

std::vector<OpCase> Cases() {
  return {{"f32", {{"dtype", "f32"}}, {I32({3, 19})}, FillBetween(-1, 1)},
          {"bf16", {{"dtype", "bf16"}}, {I32({2, 67})}, FillBetween(0, 2)}};
}

}  // namespace

Op op_nonzero() { return {.infer = Infer, .reference = Reference, .cases = Cases}; }

}  // namespace syntra
