// SPDX-License-Identifier: Apache-2.0
#include "run/stragglers.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/clock.h"

namespace syntra {
namespace {

// The median of `sorted` without one element that equals `value`.
double MedianWithout(std::span<const double> sorted, double value) {
  const size_t without = std::ranges::lower_bound(sorted, value) - sorted.begin();
  const auto at = [&](size_t i) { return sorted[i < without ? i : i + 1]; };
  const size_t count = sorted.size() - 1;
  return (at((count - 1) / 2) + at(count / 2)) / 2;
}

std::vector<double> MediansOfOthers(std::span<const double> seconds) {
  std::vector<double> sorted(seconds.begin(), seconds.end()), medians;
  std::ranges::sort(sorted);
  for (const double own : seconds) medians.push_back(MedianWithout(sorted, own));
  return medians;
}

}  // namespace

Stragglers::Stragglers(std::vector<std::string> hosts, std::function<double()> seconds)
    : hosts_(std::move(hosts)), seconds_(seconds ? std::move(seconds) : MonotonicSeconds) {}

std::optional<std::string> Stragglers::Add(std::span<const double> rank_seconds) {
  if (hosts_.size() < 2) return std::nullopt;
  steps_.push_back({{rank_seconds.begin(), rank_seconds.end()}, MediansOfOthers(rank_seconds)});
  if (steps_.size() > kWindow) steps_.pop_front();
  if (warned_at_ && seconds_() - *warned_at_ < kSilentSeconds) return std::nullopt;

  struct Record {
    size_t rank = 0, slow_steps = 0;
    double seconds = 0, others = 0;  // in all steps of the window
  };
  std::optional<Record> worst;
  for (size_t rank = 0; rank < hosts_.size(); ++rank) {
    Record record{.rank = rank};
    for (const StepTimes& step : steps_) {
      const double own = step.seconds[rank], others = step.others[rank];
      record.slow_steps += own > std::max(kFactor * others, others + kMinimum);
      record.seconds += own;
      record.others += others;
    }
    if (record.slow_steps < kSlowSteps) continue;
    if (!worst || record.seconds > worst->seconds) worst = record;
  }
  if (!worst) return std::nullopt;
  warned_at_ = seconds_();
  const auto count = static_cast<double>(steps_.size());
  return fmt::format(
      "rank {} on {} slows down all {} ranks: its gradients are ready {:.3g} s into a step, those "
      "of the others after {:.3g} s (median; in {} of the last {} steps)",
      worst->rank, hosts_[worst->rank], hosts_.size(), worst->seconds / count,
      worst->others / count, worst->slow_steps, steps_.size());
}

}  // namespace syntra
