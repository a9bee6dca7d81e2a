// SPDX-License-Identifier: Apache-2.0
// Hooks do everything around the steps of a run besides training: logging, comparing, saving,
// evaluating. A trainer calls its hooks in the order of its list, and on all ranks at the same
// points.
#pragma once

#include <cstdint>

#include "base/failure.h"
#include "train/step.h"

namespace syntra {

struct StepReport {
  int64_t step = 0;  // steps done, this one included
  StepResult result;
  double seconds = 0;  // of the step, from its beginning to its end
  bool stops = false;  // the run saves and stops after it, on request
  bool last = false;   // of the run
};

// A hook that returns bool says whether to continue: false if any rank was asked to stop meanwhile.
// All ranks return the same.
class Hook {
 public:
  virtual ~Hook() = default;
  // Called once on all hooks, before the first one's Start and before the run's records are opened,
  // when `step` steps are done. Throws if the run must not go on from there. Writes nothing.
  virtual void Check(int64_t /*step*/) {}
  // Called once before these hooks' first step, when `step` steps are done. From here on all
  // hooks may use the chief's records and progress, in whichever order they are
  // (Trainer::OpenRecords). If a hook returns false, the run stops: the hooks after it are not
  // called, nor is Stop.
  virtual bool Start(int64_t) { return true; }
  virtual bool AfterStep(const StepReport&) { return true; }
  // Whether AfterStep will read the parameters. If no hook's does, ranks that share the parameters
  // gather them during the next step.
  virtual bool ReadsParametersAfter(const StepReport&) const { return true; }
  // Called on all hooks when the run stops before its last step because a rank was asked to, after
  // AfterStep of all hooks. The same command continues the run.
  virtual void Stop(int64_t) {}
  // Called on all hooks when all ranks leave the loop together, by a CommonError or a Divergence.
  // The run then ends with the error, or makes new hooks and goes back to an earlier checkpoint.
  // Waits for the hook's work in the background.
  virtual void Settle() {}
  // Called on all hooks when any error ends this rank, and then the job; after Settle, if the ranks
  // share the error. The other ranks may be waiting for this one. Finishes what the hook has begun
  // beside training.
  virtual void Leave(const Failure&) noexcept {}
  // Called when all steps are done, after AfterStep of the last one. A run that had done them
  // earlier calls it right after Start. If a hook returns false, those after it are not called.
  virtual bool End(int64_t) { return true; }
};

// Whether something that happens every `every` steps happens after `step`; 0: never.
inline bool IsDue(int64_t step, int64_t every) { return every > 0 && step % every == 0; }

}  // namespace syntra
