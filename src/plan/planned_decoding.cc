// SPDX-License-Identifier: Apache-2.0
#include "plan/planned_decoding.h"

#include <algorithm>
#include <limits>

#include "data/example.h"
#include "plan/training_plan.h"

namespace syntra {
namespace {

// How many inputs a run decodes at each evaluation, at most; 0: none. The examples of tasks are not
// counted yet.
int64_t DecodedInputs(const Config& config) {
  if (ArchitectureOf(config.model()).outputs() != Outputs::kTokens) return 0;
  if (HasTasks(config.data())) {
    const std::vector<std::unique_ptr<Task>> tasks = MakeTasks(config.data());
    const bool decodes = !std::ranges::all_of(
        tasks, [&](const std::unique_ptr<Task>& task) { return RanksLabels(config, *task); });
    return decodes ? std::numeric_limits<int64_t>::max() : 0;
  }
  return config.data().validation_size() > 0 ? config.evaluation().samples() : 0;
}

}  // namespace

TrainedModel TrainedModelOf(const PlannedModel& model, const Arenas& parameters, Backend& backend) {
  return {model.model(), model.parameters(),    parameters.parameters, model.activations(),
          backend,       parameters.transients, parameters.rounded};
}

bool RanksLabels(const Config& config, const Task& task) {
  if (task.traits().labels.empty()) return false;  // there is nothing to rank
  return config.evaluation().rank_classification() ||
         ArchitectureOf(config.model()).outputs() == Outputs::kClasses;
}

DecodingMemory DecodingMemoryOf(const TrainingPlan& plan) {
  const int64_t inputs = DecodedInputs(plan.config());
  if (inputs == 0) return {};
  return MemoryOfDecoding(TrainedModelOf(plan.planned_model(), {}, plan.backend()),
                          DecodeSettingsOf(plan.config()), inputs);
}

}  // namespace syntra
