// SPDX-License-Identifier: Apache-2.0
// Finds everything that would stop a run and can be known before anything is created, tokenized or
// computed. `check` prints it all; `pretrain` does not start if something is wrong.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "configs/schema/config.pb.h"
#include "dist/communicator.h"
#include "plan/training_plan.h"
#include "train/findings.h"
#include "train/initial.h"

namespace syntra {

// The ranks of a run.
struct RankPlaces {
  int ranks = 1;
  int ranks_on_host = 1;  // they share the host's memory
  Backend* backend = &CpuBackend();
};

struct PreflightReport {
  std::vector<Finding> findings;
  std::shared_ptr<const TrainingPlan> plan;  // null if the model is impossible
  std::optional<InitialModel> initial;  // InitialOf the configuration, if nothing was wrong with it
};

// Makes all checks in order. A check is skipped if it needs a result that an earlier one could not
// get. Changes nothing, and takes seconds even with large corpora: it reads little more than the
// first records of a file. `initial` is InitialOf the configuration, if it has been opened.
PreflightReport Preflight(const Config& config, const RankPlaces& places,
                          std::optional<InitialModel> initial = std::nullopt);

// Throws one Error with all failures and the code of the first. Returns the warnings.
std::vector<std::string> RequireNoFailure(const std::vector<Finding>& findings);

// The results that the run goes on with, so that nothing is planned, opened and verified twice.
struct PassedPreflight {
  std::vector<std::string> warnings;         // of rank 0
  std::shared_ptr<const TrainingPlan> plan;  // on every rank
  std::optional<InitialModel> initial;       // InitialOf the configuration, on every rank
};

// The checks that a run makes before anything else. Rank 0 checks everything, the first rank of
// each other host checks the host's memory, and every rank checks its GPU's memory. Collective.
// Throws as RequireNoFailure.
PassedPreflight PreflightOfRanks(const Config& config, Communicator& ranks, Backend& backend,
                                 std::optional<InitialModel> initial);

}  // namespace syntra
