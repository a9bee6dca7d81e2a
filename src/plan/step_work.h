// SPDX-License-Identifier: Apache-2.0
// What a plan has one rank do in a step, for predictions (plan/scaling.h).
#pragma once

#include <string>
#include <vector>

#include "plan/scaling.h"
#include "plan/training_plan.h"

namespace syntra {

// Of the rank with most.
StepWork StepWorkOf(const TrainingPlan& plan);

// The calls of one op with operands of the same types.
struct OpWork {
  std::string op, operands;  // "matmul", "bf16[2, 5, 8], f32[8, 4] -> bf16[2, 5, 4]"
  double calls = 0;          // of one rank in a step
  // Of one call, the mean where calls differ in what they add to: the FLOPs of products, with what
  // is recomputed; each operand once, of the type that the program gives it, what is added to or
  // updated twice. So neither kernel nor library can do with less, but for parameters that a GPU
  // reads in bf16.
  double flops = 0, bytes = 0;
};
// Of the rank with most state. What has most FLOPs, then bytes, comes first.
std::vector<OpWork> OpsOfStep(const TrainingPlan& plan);

}  // namespace syntra
