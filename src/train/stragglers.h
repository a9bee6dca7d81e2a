// SPDX-License-Identifier: Apache-2.0
// Finds a rank that keeps the others waiting: a slow or shared machine, a bad disk, a hot
// processor. Every step lasts as long as its slowest rank.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace syntra {

class Stragglers {
 public:
  // A rank is slow in a step if it takes kFactor times the median of the other ranks, and at least
  // kMinimum seconds longer; it is a straggler if it was slow in kSlowSteps of the last kWindow
  // steps.
  static constexpr double kFactor = 1.25;
  static constexpr double kMinimum = 0.01;
  static constexpr size_t kWindow = 20;
  static constexpr size_t kSlowSteps = 16;
  // From one warning to the next.
  static constexpr double kSilentSeconds = 600;

  // `hosts`: the machine of each rank. `seconds` is a monotonic clock; by default the system's.
  explicit Stragglers(std::vector<std::string> hosts, std::function<double()> seconds = {});

  // After a step: what each rank took until it was ready to add gradients. Says who is the slowest
  // straggler, where it runs and how slow it is, if there is one and the last warning is old.
  std::optional<std::string> Add(std::span<const double> rank_seconds);

 private:
  struct Step {
    std::vector<double> seconds;  // of each rank
    std::vector<double> others;   // median of the others of each rank
  };

  std::vector<std::string> hosts_;
  std::function<double()> seconds_;
  std::deque<Step> steps_;
  std::optional<double> warned_at_;
};

}  // namespace syntra
