// SPDX-License-Identifier: Apache-2.0
#include "run/loss_spikes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/error.h"
#include "base/median.h"
#include "base/text.h"

namespace syntra {
namespace {

// The standard deviation of a normal distribution over its median absolute deviation.
constexpr double kNormal = 1.4826;

}  // namespace

std::optional<LossSpikes::Spike> LossSpikes::Add(double loss) {
  if (!std::isfinite(loss)) return std::nullopt;
  std::optional<Spike> spike;
  if (losses_.size() >= kFewest) {
    std::vector<double> values(losses_.begin(), losses_.end());
    const double median = Median(values);
    for (double& value : values) value = std::abs(value - median);
    const double deviation = std::max(kNormal * Median(values), kLeastDeviation * std::abs(median));
    const double deviations = (loss - median) / deviation;
    if (deviations > kSpike) spike = {deviations, median};
  }
  losses_.push_back(loss);
  if (losses_.size() > kWindow) losses_.pop_front();
  return spike;
}

// The shortest text that reads back to the same number.
std::string LossSpikes::ToText() const { return fmt::format("{}", fmt::join(losses_, " ")); }

void LossSpikes::Restore(std::string_view text) {
  losses_.clear();
  if (text.empty()) return;
  for (const std::string& number : Split(text, ' ')) {
    double loss = 0;
    if (!ParseDouble(number, &loss) || !std::isfinite(loss) || losses_.size() == kWindow) {
      Fail(ExitCode::kCheckpoint, "\"{}\" is not a list of losses", Printable(text, 40));
    }
    losses_.push_back(loss);
  }
}

}  // namespace syntra
