// SPDX-License-Identifier: Apache-2.0
#include "optim/schedule.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace syntra {

double LearningRate(const ScheduleConfig& schedule, int64_t step, int64_t total_steps) {
  const double rate = schedule.rate();
  const int64_t warmup = schedule.warmup_steps();
  const bool rises = schedule.kind() != ScheduleConfig::RSQRT && step < warmup;
  if (rises) return rate * static_cast<double>(step) / static_cast<double>(warmup);
  const double span = static_cast<double>(std::max<int64_t>(1, total_steps - 1 - warmup));
  const double progress = std::min(1.0, static_cast<double>(step - warmup) / span);
  const double final_rate = schedule.final_rate();
  switch (schedule.kind()) {
    case ScheduleConfig::RSQRT:
      return rate / std::sqrt(static_cast<double>(std::max({step, warmup, int64_t{1}})));
    case ScheduleConfig::CONSTANT:
      return rate;
    case ScheduleConfig::LINEAR:
      return rate + (final_rate - rate) * progress;
    case ScheduleConfig::COSINE:
      return final_rate + (rate - final_rate) * 0.5 * (1 + std::cos(M_PI * progress));
    case ScheduleConfig::INVERSE_SQRT:
      return rate * std::sqrt(static_cast<double>(std::max<int64_t>(warmup, 1)) /
                              static_cast<double>(std::max<int64_t>(step, 1)));
  }
  SYNTRA_CHECK(false, "no schedule is of kind {}", static_cast<int>(schedule.kind()));
}

}  // namespace syntra
