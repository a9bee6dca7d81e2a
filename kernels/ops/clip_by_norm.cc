// SPDX-License-Identifier: Apache-2.0
// Gradient clipping by global norm (Pascanu et al. 2013), computed on the device of the update:
// hyper [N], sum_squares [1], objective [1] -> hyper [N] with its gradient_scale
// (math/hyperparameters.h) times
//   min(1, clip_norm / sqrt(sum_squares)), or 1 if clip_norm is 0;
//   NaN if sum_squares or objective is not finite: the optimizers' ops then change nothing.
// Attributes {clip_norm}.
#include <algorithm>

#include "kernels/math/clip.h"
#include "kernels/math/hyperparameters.h"
#include "kernels/ops/shapes.h"

namespace syntra {
namespace {

std::vector<TensorType> Infer(const Attributes&, std::span<const TensorType> inputs) {
  CheckOperands(
      "clip_by_norm", inputs,
      {{"hyper", kParameter, 1}, {"sum_squares", kParameter, 1}, {"objective", kParameter, 1}});
  SYNTRA_CHECK(inputs[0].shape[0] >= hyper::kCommonSlots, "clip_by_norm: hyper is {}",
               ToString(inputs[0]));
  CheckShape("clip_by_norm", "sum_squares", inputs[1], {1});
  CheckShape("clip_by_norm", "objective", inputs[2], {1});
  return {inputs[0]};
}

void Reference(const OpCall& call, std::span<const ReferenceTensor> inputs,
               std::span<const ReferenceTensor> outputs) {
  std::ranges::copy(inputs[0].numbers, outputs[0].numbers.begin());
  outputs[0].numbers[hyper::kGradientScale] *=
      ClipFactor(inputs[1].numbers[0], inputs[2].numbers[0], call.attributes.Number("clip_norm"));
}

std::vector<OpCase> Cases() {
  const auto with = [](double clip_norm) { return Attributes{{"clip_norm", clip_norm}}; };
  return {{"off", with(0), {F32({5}), F32({1}), F32({1})}, {}},
          {"clipping", with(1e-3), {F32({3}), F32({1}), F32({1})}, {}}};
}

}  // namespace

Op op_clip_by_norm() { return {.infer = Infer, .reference = Reference, .cases = Cases}; }

}  // namespace syntra
