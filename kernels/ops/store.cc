// SPDX-License-Identifier: Apache-2.0
// Copies a tensor to memory outside the program: x A of any shape -> updates y, of the same type.
#include <algorithm>

#include "kernels/ops/shapes.h"

namespace syntra {
namespace {

std::vector<TensorType> Infer(const Attributes&, std::span<const TensorType> in) {
  CheckOperands("store", in, {{"x", kActivation, kAnyRank}});
  return {in[0]};
}

void Reference(const OpCall&, std::span<const ReferenceTensor> in,
               std::span<const ReferenceTensor> out) {
  std::ranges::copy(in[0].numbers, out[0].numbers.begin());
}

std::vector<OpCase> Cases() {
  return {{"f32", {}, {{DType::kF32, {3, 5}}}, {}}, {"bf16", {}, {{DType::kBF16, {3, 5}}}, {}}};
}

}  // namespace

Op op_store() {
  return {.infer = &Infer, .reference = &Reference, .cases = &Cases, .updates = true};
}

}  // namespace syntra
