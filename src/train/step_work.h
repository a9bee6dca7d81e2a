// SPDX-License-Identifier: Apache-2.0
// What a plan has one rank do in a step, for predictions (train/scaling.h).
#pragma once

#include "train/plan.h"
#include "train/scaling.h"

namespace syntra {

// Of the rank with most.
StepWork StepWorkOf(const TrainingPlan& plan);

}  // namespace syntra
