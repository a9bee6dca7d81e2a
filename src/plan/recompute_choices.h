// SPDX-License-Identifier: Apache-2.0
// The cost and the savings of each value of train.recompute.
#pragma once

#include <vector>

#include "plan/training_plan.h"

namespace syntra {

struct RecomputeChoice {
  TrainConfig::Recompute recompute = TrainConfig::NOTHING;
  double training_bytes = 0;  // MemoryNeeds::training; nothing else of the memory depends on it
  double added_flops = 0;     // of a step, over those of NOTHING
};

// The choices for the plan's run, from the cheapest to the costliest.
std::vector<RecomputeChoice> RecomputeChoices(const TrainingPlan& plan);

// The values that cost more than `recompute`, from the cheapest to the costliest.
std::vector<TrainConfig::Recompute> CostlierThan(TrainConfig::Recompute recompute);

}  // namespace syntra
