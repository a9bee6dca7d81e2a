// SPDX-License-Identifier: Apache-2.0
// The training loop: from a workload to a trained model in a run directory. Called again, it
// continues from the newest checkpoint, or says that the run is done.
#pragma once

#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/training_data.h"
#include "run/loss_spikes.h"
#include "run/rollbacks.h"
#include "run/skipped_steps.h"
#include "train/evaluator.h"
#include "train/replica.h"
#include "train/run_context.h"
#include "train/step.h"

namespace syntra {

// The state of a training on one rank.
struct TrainingState {
  TrainingState(RunContext& run, TrainingData training_data);

  TrainingData data;
  Replica replica;
  StepRunner runner;
  SkippedSteps skipped;
  LossSpikes spikes;
  Rollbacks rollbacks;
  double peak_flops = NAN;            // of all ranks together, a second; NaN: unknown
  int64_t step = 0;                   // steps done
  std::optional<int64_t> saved_step;  // of the newest checkpoint, if that need not be saved again
};

// The data that a run learns from and is judged by, in which pretraining and finetuning differ. All
// calls are collective.
class Workload {
 public:
  virtual ~Workload() = default;
  // Prepares the files that the run reads. False if a rank was asked to stop.
  virtual bool Prepare(RunContext& run) = 0;
  // Opens the prepared data, and puts its digests and the tokenizer into run.identity.
  virtual TrainingData Open(RunContext& run) = 0;
  // Describes the data for the log, after Open: "1,000 documents, 2.1M tokens".
  virtual std::string DescribeData() const = 0;
  // The evaluators that judge the model; after Open. Both arguments outlive them.
  virtual std::vector<std::unique_ptr<Evaluator>> Evaluators(RunContext& run,
                                                             TrainingState& state) = 0;
  // Whether a run that has diverged may go back to an earlier checkpoint.
  virtual bool may_roll_back() const { return true; }
  // Called when all evaluators have judged the model as it is after `step`; never called where
  // there are no evaluators. What it returns on rank 0 is recorded beside their values.
  virtual NamedValues Evaluated(RunContext&, TrainingState&, int64_t /*step*/) { return {}; }
  // Called when everything is trained, saved and evaluated; the replica's contents are not needed
  // any more. False if a rank was asked to stop.
  virtual bool Finish(RunContext&, TrainingState&) { return true; }
};

struct RunOutcome {
  ExitCode code = ExitCode::kDone;  // kDone, or kRequeue after a stop request
  std::optional<int64_t> step;      // where the run stands, unless it was stopped before it knew
  bool was_done = false;            // there was nothing left to train
};

// All ranks call it together with the same configuration (agreement.h), each with a backend of its
// own. The preflight comes first. `initial` is InitialOf the configuration, if it has been opened.
// Throws Error; a rank that does must abort the job.
RunOutcome Train(Workload& workload, const Config& config, const RankContext& rank,
                 std::optional<InitialModel> initial = std::nullopt);

}  // namespace syntra
