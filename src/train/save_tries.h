// SPDX-License-Identifier: Apache-2.0
// What rank 0 makes of saves that fail: it counts and records them, and decides which end the run.
#pragma once

#include <functional>
#include <string>

#include "train/run_context.h"

namespace syntra {

class SaveTries {
 public:
  explicit SaveTries(RunContext& run) : run_(run) {}

  // On rank 0. Calls `work`, which does a part of the save of `step`; false if it fails. Throws its
  // error if the save must succeed, if checkpoint.max_failed_saves failed in a row, or if the
  // directory is another run's.
  bool Try(int64_t step, bool must_succeed, const std::function<void()>& work);
  // Counts seconds in which training waited for the save that is not recorded yet.
  void AddWait(double seconds) { waited_ += seconds; }
  // On rank 0. Records that the checkpoint of `step` is there.
  void Succeeded(int64_t step);
  // Why the state was not fit to be saved, once the other ranks must learn it; empty: it was.
  const std::string& diverged() const { return diverged_; }

 private:
  RunContext& run_;
  int failed_in_a_row_ = 0;
  double waited_ = 0;
  std::string diverged_;
};

}  // namespace syntra
