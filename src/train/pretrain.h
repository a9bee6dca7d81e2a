// SPDX-License-Identifier: Apache-2.0
// Pretraining by span corruption: from a configuration to a trained model in a run directory.
// Called again, it continues from the newest checkpoint, or says that the run is done.
#pragma once

#include <optional>

#include "configs/schema/config.pb.h"
#include "dist/communicator.h"
#include "kernels/backend.h"
#include "train/watchdog.h"

namespace syntra {

struct PretrainOutcome {
  ExitCode code = ExitCode::kDone;  // kDone, or kRequeue after a stop request
  std::optional<int64_t> step;      // where the run stands, unless it was stopped before it knew
  bool was_done = false;            // there was nothing left to train
  // Of the first and the last evaluation of this call, if it made any.
  std::optional<double> first_log_perplexity, last_log_perplexity;
};

// All ranks call it together with the same configuration (agreement.h), each with a backend of its
// own. Throws Error; a rank that does must abort the job.
PretrainOutcome Pretrain(const Config& config, Communicator& ranks, Backend& backend,
                         Watchdog& watchdog);

}  // namespace syntra
