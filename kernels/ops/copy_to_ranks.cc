// SPDX-License-Identifier: Apache-2.0
// x, which each rank goes on with in its own way; so the gradient of x is the sum of all ranks' (f
// of Shoeybi et al. 2019, "Megatron-LM", section 3). x f32 of any shape. Attributes {ranks}: how
// many there are.
#include <algorithm>

#include "kernels/ops/shapes.h"

namespace syntra {
namespace {

std::vector<TensorType> Infer(const Attributes& attributes, std::span<const TensorType> inputs) {
  CheckOperands("copy_to_ranks", inputs, {{"x", kParameter, kAnyRank}});
  SYNTRA_CHECK(attributes.Int("ranks") >= 1, "a copy to {} ranks", attributes.Int("ranks"));
  return {inputs[0]};
}

void Reference(const OpCall&, std::span<const ReferenceTensor> inputs,
               std::span<const ReferenceTensor> outputs) {
  std::ranges::copy(inputs[0].numbers, outputs[0].numbers.begin());
}

void Gradient(GradientRule& rule) {
  rule.Contribute("all_reduce", rule.attributes(), {rule.output_gradient(0)}, {0});
}

std::vector<OpCase> Cases() {
  return {{"one_rank", {{"ranks", int64_t{1}}}, {F32({2, 3, 19})}, {}}};
}

}  // namespace

Op op_copy_to_ranks() {
  return {.infer = Infer,
          .reference = Reference,
          .gradient = Gradient,
          .cases = Cases,
          .keeps_elements = true};
}

}  // namespace syntra
