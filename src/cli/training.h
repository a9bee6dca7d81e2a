// SPDX-License-Identifier: Apache-2.0
// The common parts of the commands that train.
#pragma once

#include <functional>
#include <string>

#include "cli/command.h"
#include "train/initial.h"
#include "train/run_context.h"

namespace syntra {

// A run's configuration, and what it starts from where loading that has opened it.
struct LoadedRun {
  Config config;
  std::optional<InitialModel> initial;
  std::string lacks;  // why it cannot be trained, if it was loaded to be looked at; else empty
};

// Joins the ranks of the job, calls `load` on each and, once all have the same configuration,
// `train` with the communicator that sums gradients and the backend.
using LoadRun = std::function<LoadedRun(Communicator& ranks, Watchdog& watchdog)>;
using TrainRun = std::function<ExitCode(LoadedRun, const RankContext& rank)>;
Action TrainingAction(std::string command, LoadRun load, TrainRun train);

// Prints the result of a run. The result is also in the run directory, so a standard output that
// cannot be written only causes a warning.
void PrintResult(const std::string& text);

}  // namespace syntra
