// SPDX-License-Identifier: Apache-2.0
// The share of right labels. A text that is no label is wrong.
#include <algorithm>

#include "metrics/metric.h"

namespace syntra {
namespace {

std::vector<double> Accuracy(std::span<const Judgement> examples, int) {
  const auto right = std::ranges::count_if(
      examples, [](const Judgement& one) { return one.predicted == one.expected; });
  return {100.0 * static_cast<double>(right) / static_cast<double>(examples.size())};
}

}  // namespace

Metric metric_accuracy() {
  return {.reads = Metric::Reads::kLabels, .values = {"accuracy"}, .compute = Accuracy};
}

}  // namespace syntra
