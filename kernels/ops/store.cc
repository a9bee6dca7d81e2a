// SPDX-License-Identifier: Apache-2.0
// Copies a tensor to memory outside the program: x -> updates y, of the same type.
#include "kernels/op.h"

namespace syntra {
namespace {

std::vector<TensorType> Infer(const Attributes&, std::span<const TensorType> in) { return {in[0]}; }

void Reference(const OpCall&, std::span<const ReferenceTensor> in,
               std::span<const ReferenceTensor> out) {
  for (size_t i = 0; i < in[0].numbers.size(); ++i) out[0].numbers[i] = in[0].numbers[i];
  for (size_t i = 0; i < in[0].integers.size(); ++i) out[0].integers[i] = in[0].integers[i];
}

std::vector<OpCase> Cases() {
  return {{"f32", {}, {{DType::kF32, {3, 5}}}, {}}, {"bf16", {}, {{DType::kBF16, {3, 5}}}, {}}};
}

}  // namespace

Op op_store() {
  return {.infer = &Infer, .reference = &Reference, .cases = &Cases, .updates = true};
}

}  // namespace syntra
