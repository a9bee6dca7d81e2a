// SPDX-License-Identifier: Apache-2.0
// The recent steps that were bad, and the limit on them: those that were skipped because their loss
// or gradient was not finite and, with train.loss_spikes COUNT, those whose loss stood out. They
// are part of a run's state: a run that diverges must not go on for ever by being restarted.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>

namespace syntra {

class SkippedSteps {
 public:
  static constexpr int64_t kWindow = 100;  // steps

  // `limit`: train.max_skipped_steps.
  explicit SkippedSteps(int limit) : limit_(limit) {}

  // To be called after step `step`. Throws Divergence when more than `limit` of the last kWindow
  // steps were bad.
  void Count(int64_t step, bool bad);

  // The text for a checkpoint: the numbers of the bad steps, in order, separated by spaces.
  std::string ToText() const;
  // Throws Error(kCheckpoint) for what ToText cannot have written.
  void Restore(std::string_view text);

 private:
  int limit_;
  std::deque<int64_t> steps_;
};

}  // namespace syntra
