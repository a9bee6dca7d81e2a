// SPDX-License-Identifier: Apache-2.0
// The work of one rank in a step of a plan, for predictions (plan/scaling.h).
#pragma once

#include <string>
#include <vector>

#include "plan/scaling.h"
#include "plan/training_plan.h"

namespace syntra {

// The work of the rank with the most optimizer state.
StepWork StepWorkOf(const TrainingPlan& plan);

// The calls of one op with operands of the same types.
struct OpWork {
  std::string op, operands;  // "matmul", "bf16[2, 5, 8], f32[8, 4] -> bf16[2, 5, 4]"
  double calls = 0;          // of one rank in a step
  // FLOPs of products in one call, those of recomputation included, and bytes of its operands; the
  // means where calls differ in what they add to. Each operand counts once, in the type that the
  // program gives it, or twice if it is added to or updated. So no kernel can move less, except
  // for parameters that a GPU reads in bf16.
  double flops = 0, bytes = 0;
};
// The ops of the rank with the most optimizer state. Those with the most FLOPs, then bytes, come
// first.
std::vector<OpWork> OpsOfStep(const TrainingPlan& plan);

}  // namespace syntra
