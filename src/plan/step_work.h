// SPDX-License-Identifier: Apache-2.0
// The work of one rank in a step of a plan, for predictions (plan/scaling.h).
#pragma once

#include "plan/scaling.h"
#include "plan/training_plan.h"

namespace syntra {

// The work of the rank with the most optimizer state.
StepWork StepWorkOf(const TrainingPlan& plan);

}  // namespace syntra
