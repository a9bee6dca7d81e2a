// SPDX-License-Identifier: Apache-2.0
#include "run/skipped_steps.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "run/common_error.h"

namespace syntra {

void SkippedSteps::Count(int64_t step, bool bad) {
  while (!steps_.empty() && steps_.front() <= step - kWindow) steps_.pop_front();
  if (!bad) return;
  steps_.push_back(step);
  if (static_cast<int>(steps_.size()) > limit_) {
    throw Divergence(
        steps_.front(),
        fmt::format("{} of the last {} steps had a loss or gradient that is not finite, or a "
                    "counted spike of the loss (train.max_skipped_steps is {}); lower "
                    "optimizer.schedule.rate or set "
                    "optimizer.clip_norm",
                    steps_.size(), kWindow, limit_));
  }
}

std::string SkippedSteps::ToText() const { return fmt::format("{}", fmt::join(steps_, " ")); }

void SkippedSteps::Restore(std::string_view text) {
  steps_.clear();
  if (text.empty()) return;
  for (const std::string& number : Split(text, ' ')) {
    int64_t step = 0;
    if (!ParseInt64(number, &step) || step <= (steps_.empty() ? 0 : steps_.back())) {
      Fail(ExitCode::kCheckpoint, "\"{}\" is not a list of skipped steps", Printable(text, 40));
    }
    steps_.push_back(step);
  }
}

}  // namespace syntra
