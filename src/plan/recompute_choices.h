// SPDX-License-Identifier: Apache-2.0
// What each value of train.recompute costs, and what it saves.
#pragma once

#include <vector>

#include "plan/training_plan.h"

namespace syntra {

struct RecomputeChoice {
  TrainConfig::Recompute recompute = TrainConfig::NOTHING;
  double training_bytes = 0;  // MemoryNeeds::training; nothing else of the memory depends on it
  double added_flops = 0;     // of a step, over those of NOTHING
};

// For the plan's run, from the cheapest to the costliest.
std::vector<RecomputeChoice> RecomputeChoices(const TrainingPlan& plan);

// Those that cost more than `recompute`, from the cheapest to the costliest.
std::vector<TrainConfig::Recompute> CostlierThan(TrainConfig::Recompute recompute);

}  // namespace syntra
