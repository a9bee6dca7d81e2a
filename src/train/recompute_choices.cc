// SPDX-License-Identifier: Apache-2.0
#include "train/recompute_choices.h"

namespace syntra {
namespace {

// The values of the schema are in the order of their cost.
std::vector<TrainConfig::Recompute> ChoicesFrom(int first) {
  std::vector<TrainConfig::Recompute> choices;
  for (int i = first; i < TrainConfig::Recompute_ARRAYSIZE; ++i) {
    choices.push_back(static_cast<TrainConfig::Recompute>(i));
  }
  return choices;
}

}  // namespace

std::vector<TrainConfig::Recompute> CostlierThan(TrainConfig::Recompute recompute) {
  return ChoicesFrom(recompute + 1);
}

std::vector<RecomputeChoice> RecomputeChoices(const TrainingPlan& plan) {
  std::vector<RecomputeChoice> choices;
  for (const TrainConfig::Recompute choice : ChoicesFrom(0)) {
    Config config = plan.config();
    config.mutable_train()->set_recompute(choice);
    const auto changed = TrainingPlan::Make(config, {.ranks = plan.ranks(),
                                                     .backend = &plan.backend(),
                                                     .bucket_elements = plan.bucket_elements()});
    choices.push_back({choice, TrainingBytes(*changed), changed->recomputed_flops_per_step()});
  }
  return choices;
}

}  // namespace syntra
