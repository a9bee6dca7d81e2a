// SPDX-License-Identifier: Apache-2.0
// What happens around the steps of a run besides training: logging, comparing, saving, evaluating.
// A trainer calls its hooks in the order of its list, on all ranks together.
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
  // `step` steps are done, and this process has made none of them.
  virtual bool Start(int64_t) { return true; }
  virtual bool AfterStep(const StepReport&) { return true; }
  // Whether that reads the parameters. Where no hook does, ranks that share them gather them beside
  // the next step.
  virtual bool ReadsParametersAfter(const StepReport&) const { return true; }
  // The run stops here on request; the same command continues.
  virtual void Stop(int64_t) {}
  // The run ends by an error of all ranks, or goes back to an earlier checkpoint with other hooks:
  // what was begun beside training is finished.
  virtual void Settle() {}
  // This rank ends by an error, and then the job; the others may wait for it meanwhile. What was
  // begun beside training is finished.
  virtual void Leave(const Failure&) noexcept {}
  // All steps are done.
  virtual bool End(int64_t) { return true; }
};

// Whether something that happens every so many steps happens after `step`; 0: never.
inline bool IsDue(int64_t step, int64_t every) { return every > 0 && step % every == 0; }

}  // namespace syntra
