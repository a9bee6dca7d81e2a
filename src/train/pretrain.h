// Pretraining by span corruption: from a configuration to a trained model in a run directory. Called again,
// it continues from the newest checkpoint, or says that the run is done.
#pragma once

#include "configs/schema/config.pb.h"
#include "dist/communicator.h"

namespace syntra {

struct PretrainOutcome {
  ExitCode code = ExitCode::kDone;  // kDone, or kRequeue after a stop request
  int64_t step = 0;
  double first_log_perplexity = 0;  // before the first step of this call
  double last_log_perplexity = 0;
};

// All ranks call it together. Throws Error; a rank that does must abort the job.
PretrainOutcome Pretrain(const Config& config, Communicator& ranks);

}  // namespace syntra
