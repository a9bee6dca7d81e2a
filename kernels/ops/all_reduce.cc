// SPDX-License-Identifier: Apache-2.0
// The sum of x over the ranks that run the program, on each of them. x f32 of any shape. Attributes
// {ranks}: how many there are. All ranks go on alike from the sum, so its gradient is that of each
// rank's x (g of Shoeybi et al. 2019, "Megatron-LM", section 3). The reference is that of one rank.
#include <algorithm>

#include "kernels/ops/shapes.h"

namespace syntra {
namespace {

std::vector<TensorType> Infer(const Attributes& attributes, std::span<const TensorType> inputs) {
  CheckOperands("all_reduce", inputs, {{"x", kParameter, kAnyRank}});
  SYNTRA_CHECK(attributes.Int("ranks") >= 1, "all_reduce over {} ranks", attributes.Int("ranks"));
  return {inputs[0]};
}

void Reference(const OpCall& call, std::span<const ReferenceTensor> inputs,
               std::span<const ReferenceTensor> outputs) {
  SYNTRA_CHECK(call.attributes.Int("ranks") == 1, "the reference is that of one rank");
  std::ranges::copy(inputs[0].numbers, outputs[0].numbers.begin());
}

void Gradient(GradientRule& rule) { rule.Pass(0, rule.output_gradient(0)); }

std::vector<OpCase> Cases() {
  return {{"one_rank", {{"ranks", int64_t{1}}}, {F32({2, 3, 19})}, {}}};
}

}  // namespace

Op op_all_reduce() {
  return {.infer = Infer,
          .reference = Reference,
          .gradient = Gradient,
          .cases = Cases,
          .collective = true};
}

}  // namespace syntra
