// SPDX-License-Identifier: Apache-2.0
// A training plan as text and as JSON.
#pragma once

#include "base/json.h"
#include "plan/training_plan.h"

namespace syntra {

// Prints the sizes of a plan's model and the memory of a rank. `gpus`: ranks compute on GPUs.
void PrintPlan(const TrainingPlan& plan, bool gpus);
Json PlanJson(const TrainingPlan& plan, bool gpus);

// The ops of a step, those with the same operands in one line.
void PrintPlannedOps(const TrainingPlan& plan);
Json PlannedOpsJson(const TrainingPlan& plan);

}  // namespace syntra
