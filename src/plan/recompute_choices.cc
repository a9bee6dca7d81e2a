// SPDX-License-Identifier: Apache-2.0
#include "plan/recompute_choices.h"

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

RecomputeChoice ChoiceOf(const TrainingPlan& plan) {
  return {plan.config().train().recompute(), TrainingBytes(plan), plan.recomputed_flops_per_step()};
}

}  // namespace

std::vector<TrainConfig::Recompute> CostlierThan(TrainConfig::Recompute recompute) {
  return ChoicesFrom(recompute + 1);
}

std::vector<RecomputeChoice> RecomputeChoices(const TrainingPlan& plan) {
  std::vector<RecomputeChoice> choices;
  for (const TrainConfig::Recompute choice : ChoicesFrom(0)) {
    if (choice == plan.config().train().recompute()) {
      choices.push_back(ChoiceOf(plan));
      continue;
    }
    Config config = plan.config();
    config.mutable_train()->set_recompute(choice);
    choices.push_back(
        ChoiceOf(*TrainingPlan::Make(config, {.ranks = plan.ranks(),
                                              .backend = &plan.backend(),
                                              .bucket_elements = plan.bucket_elements()})));
  }
  return choices;
}

}  // namespace syntra
