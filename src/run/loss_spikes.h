// SPDX-License-Identifier: Apache-2.0
// Finds steps whose loss stands out above those of the steps before: bad data, or a run that begins
// to diverge.
#pragma once

#include <deque>
#include <optional>
#include <string>
#include <string_view>

namespace syntra {

// The median and the median absolute deviation measure what is usual: unlike mean and standard
// deviation they hardly move while fewer than half of the losses are unusual.
class LossSpikes {
 public:
  static constexpr size_t kWindow = 100;  // steps of the window
  static constexpr size_t kFewest = 20;   // with fewer there are no spikes
  static constexpr double kSpike = 6;     // deviations above the median
  // A deviation is at least this part of the median, even if the losses hardly differ.
  static constexpr double kLeastDeviation = 0.01;

  struct Spike {
    double deviations;  // above the median; of a normal distribution, they are standard deviations
    double median;
  };

  // Takes the loss of the next step. If it is a spike, returns by how much it stands out from the
  // losses before. A loss that is not finite is not a spike, and is left out of the statistics.
  std::optional<Spike> Add(double loss);

  // The text for a checkpoint: the losses of the window, in order, separated by spaces.
  std::string ToText() const;
  // Throws Error(kCheckpoint) for what ToText cannot have written.
  void Restore(std::string_view text);

 private:
  std::deque<double> losses_;
};

}  // namespace syntra
