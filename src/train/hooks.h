// SPDX-License-Identifier: Apache-2.0
// Makers of the hooks of a run. Trainer::MakeHooks chooses their order.
#pragma once

#include <memory>

#include "train/hook.h"
#include "train/trainer.h"

namespace syntra {

// Writes a line of metrics and a line of progress for each step, and names stragglers. While other
// work uses the cores of a rank, its threads sleep as they wait for each other.
std::unique_ptr<Hook> MakeLogHook(RunContext& run, TrainingState& state);

// Compares the replicas of the ranks at the start, before anything is written (Hook::Check), every
// train.compare_replicas_every steps and, unless that is 0, where the run stops or ends. Throws
// CommonError(kDiverged) if they differ. This must come before the hook that saves.
std::unique_ptr<Hook> MakeCompareHook(RunContext& run, TrainingState& state);

// Logs spikes of the loss. Counts the steps that were not finite and, where train.loss_spikes says
// so, those with a spike. Throws Divergence if they are more than train.max_skipped_steps of late.
std::unique_ptr<Hook> MakeDivergenceHook(RunContext& run, TrainingState& state);

// Saves at the start, every checkpoint.every steps, on request and at the end; also before each
// evaluation whose model is kept if it is the best (SavedEvaluationsEvery). A save that fails is
// tried again at the next occasion, up to checkpoint.max_failed_saves times in a row. The first and
// the last save are not tried again: they throw.
std::unique_ptr<Hook> MakeSaveHook(RunContext& run, TrainingState& state);

// Records the steps of train.profile and writes profile/rank-NNNN.json on every rank. This must be
// the last hook, since what the other hooks do after a step is recorded as part of that step.
std::unique_ptr<Hook> MakeProfileHook(RunContext& run);

// Whether a run that stands at `step` evaluates there, also after it was stopped and continues.
bool EvaluatesAt(int64_t step, const Config& config);

// Evaluates by the workload's evaluators, at the start, every evaluation.every steps and at the
// end.
std::unique_ptr<Hook> MakeEvaluateHook(RunContext& run, TrainingState& state, Workload& workload);

}  // namespace syntra
