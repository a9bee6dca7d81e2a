// SPDX-License-Identifier: Apache-2.0
#include "plan/memory_needs.h"

#include <limits>

#include "data/example.h"
#include "decode/batch_decoder.h"
#include "dist/tree_sum.h"
#include "kernels/cuda.h"
#include "plan/label_ranking.h"
#include "plan/training_plan.h"
#include "program/executable.h"

namespace syntra {
namespace {

double ArenaBytes(const TrainingPlan& plan, const Program& program) {
  return static_cast<double>(PlanOn(plan.backend(), program, plan.keeps_rounded()).arena_bytes);
}

double EvaluationBytes(const TrainingPlan& plan) {
  double bytes = 0;
  for (const BatchShape& shape : plan.EvaluationShapes()) {
    bytes = std::max(bytes, ArenaBytes(plan, *plan.Evaluation(shape)));
  }
  return bytes;
}

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

// For decoding samples of validation data, or the answers to tasks; zeros if neither is decoded.
// Throws Error(kConfig) if the model cannot decode.
DecodingMemory DecodingMemoryOf(const TrainingPlan& plan) {
  const int64_t inputs = DecodedInputs(plan.config());
  if (inputs == 0) return {};
  return MemoryOfDecoding(plan.planned_model().Trained({}, plan.backend()),
                          DecodeSettingsOf(plan.config()), inputs);
}

// Rank 0 copies all of the state or, where ranks share it, the parameters and, as every rank does,
// its share.
void AddCopies(const TrainingPlan& plan, MemoryNeeds* needs) {
  if (!plan.config().checkpoint().asynchronous()) return;
  const bool is_shared = plan.shards() > 1;
  needs->other_copies = is_shared ? needs->optimizer : 0;
  needs->first_copy = is_shared ? needs->parameters + needs->optimizer : plan.checkpoint_bytes();
}

}  // namespace

double TrainingBytes(const TrainingPlan& plan) { return ArenaBytes(plan, *plan.Training()); }

MemoryNeeds MemoryNeedsOf(const TrainingPlan& plan) {
  const int largest = plan.rank_with_most_state();
  MemoryNeeds needs;
  if (plan.config().train().reduction() == TrainConfig::EXACT) {
    needs.gradient_buffers += TreeLevels(plan.partition().micro_batches_per_rank());
  }
  const int64_t parameters = plan.parameters().arena_elements();
  needs.parameters = BytesOf(parameters);
  if (plan.keeps_rounded()) needs.rounded = RoundedBytes(parameters);
  needs.gradients = BytesOf(plan.parameters().gradient_elements()) * needs.gradient_buffers;
  needs.optimizer = BytesOf(plan.optimizer(largest).state_elements());
  needs.training = TrainingBytes(plan);
  needs.evaluation = EvaluationBytes(plan);
  needs.update = ArenaBytes(plan, plan.Update(largest)->program);
  const DecodingMemory decoding = DecodingMemoryOf(plan);
  needs.decoding_caches = static_cast<double>(decoding.cache_bytes);
  needs.decoding = static_cast<double>(decoding.transient_bytes);
  AddCopies(plan, &needs);
  return needs;
}

MemoryNeeds MemoryNeedsOn(const TrainingPlan& plan, bool gpus) {
  MemoryNeeds needs = plan.memory();
  if (gpus && GpusKeepRounded(ActivationType(plan.config().train().precision()))) {
    needs.rounded = RoundedBytes(plan.parameters().arena_elements());
  }
  return needs;
}

}  // namespace syntra
