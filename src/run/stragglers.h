// SPDX-License-Identifier: Apache-2.0
// Finds a rank that keeps the others waiting: a slow or shared machine, a bad disk, a hot
// processor. Every step lasts as long as its slowest rank.
#pragma once

#include <deque>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace syntra {

class Stragglers {
 public:
  // A rank is slow in a step if it takes more than kFactor times the median of the other ranks, and
  // more than kMinimum seconds longer than that. It is a straggler if it was slow in at least
  // kSlowSteps of the last kWindow steps.
  static constexpr double kFactor = 1.25;
  static constexpr double kMinimum = 0.01;
  static constexpr size_t kWindow = 20;
  static constexpr size_t kSlowSteps = 16;
  // The least time from one warning to the next.
  static constexpr double kSilentSeconds = 600;

  // `hosts`: the machine of each rank. `seconds` is a monotonic clock; by default the system's.
  explicit Stragglers(std::vector<std::string> hosts, std::function<double()> seconds = {});

  // To be called after each step with the seconds that each rank took until it was ready to add
  // gradients. Returns a warning that names the slowest straggler, its host and how slow it is;
  // nothing if there is none or if the last warning is younger than kSilentSeconds.
  std::optional<std::string> Add(std::span<const double> rank_seconds);

 private:
  struct StepTimes {
    std::vector<double> seconds;  // of each rank
    std::vector<double> others;   // for each rank, the median of the other ranks
  };

  std::vector<std::string> hosts_;
  std::function<double()> seconds_;
  std::deque<StepTimes> steps_;
  std::optional<double> warned_at_;
};

}  // namespace syntra
