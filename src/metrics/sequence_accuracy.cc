// SPDX-License-Identifier: Apache-2.0
// The share of texts that are, byte by byte, one of the accepted ones.
#include <algorithm>

#include "metrics/metric.h"

namespace syntra {
namespace {

std::vector<double> SequenceAccuracy(std::span<const Judgement> examples, int) {
  const auto right = std::ranges::count_if(examples, [](const Judgement& one) {
    return std::ranges::count(one.accepted_texts, one.predicted_text) > 0;
  });
  return {100.0 * static_cast<double>(right) / static_cast<double>(examples.size())};
}

}  // namespace

Metric metric_sequence_accuracy() {
  return {
      .reads = Metric::Reads::kTexts, .values = {"sequence_accuracy"}, .compute = SequenceAccuracy};
}

}  // namespace syntra
