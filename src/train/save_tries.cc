// SPDX-License-Identifier: Apache-2.0
#include "train/save_tries.h"

#include "base/clock.h"
#include "base/failure.h"
#include "base/log.h"

namespace syntra {

bool SaveTries::Try(int64_t step, bool must_succeed, const std::function<void()>& work) {
  const int most = run_.config.checkpoint().max_failed_saves();
  const auto start = Clock::now();
  try {
    work();
    waited_ += SecondsSince(start);
    return true;
  } catch (const std::exception&) {  // memory and threads can be refused anywhere
    const Failure failure = CurrentFailure();
    if (failure.code == ExitCode::kLocked) throw;  // the directory is another run's
    ++failed_in_a_row_;
    const double waited = std::exchange(waited_, 0) + SecondsSince(start);
    run_.chief->records->WriteEvent("save_failed", step,
                                    {{"seconds", waited}, {"error", failure.message}});
    if (failure.code == ExitCode::kDiverged) {
      if (run_.ranks.size() == 1) throw;
      diverged_ = failure.message;  // the others learn it after this step
      return false;
    }
    if (must_succeed || failed_in_a_row_ >= most) throw;
    Log().error("{} at step {} failed ({} of {} in a row): {}", what_, step, failed_in_a_row_, most,
                failure.message);
    return false;
  }
}

double SaveTries::Succeeded() {
  failed_in_a_row_ = 0;
  return std::exchange(waited_, 0);
}

}  // namespace syntra
