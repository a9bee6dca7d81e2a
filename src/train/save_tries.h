// SPDX-License-Identifier: Apache-2.0
// Tries of rank 0 to save checkpoints or other files: counts and records those that fail, and
// decides which failure ends the run.
#pragma once

#include <functional>
#include <string>
#include <utility>

#include "train/run_context.h"

namespace syntra {

class SaveTries {
 public:
  // `what` is saved, for messages.
  SaveTries(RunContext& run, std::string what) : run_(run), what_(std::move(what)) {}

  // On rank 0. Calls `work`, which does a part of the save of `step`; false if it fails. Throws its
  // error if the save must succeed, if checkpoint.max_failed_saves failed in a row, or if the
  // directory is another run's.
  bool Try(int64_t step, bool must_succeed, const std::function<void()>& work);
  // Counts seconds in which training waited for the save that is not recorded yet.
  void AddWait(double seconds) { waited_ += seconds; }
  // On rank 0. All parts of the save are done: the next failure is the first in a row. Returns the
  // seconds that training waited for it.
  double Succeeded();
  // Why the state was not fit to be saved, once the other ranks must learn it; empty: it was.
  const std::string& diverged() const { return diverged_; }

 private:
  RunContext& run_;
  const std::string what_;
  int failed_in_a_row_ = 0;
  double waited_ = 0;
  std::string diverged_;
};

}  // namespace syntra
