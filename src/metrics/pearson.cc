// SPDX-License-Identifier: Apache-2.0
// Pearson's correlation of scores. It is 0 where all predictions, or all expectations, are equal.
#include "metrics/correlation.h"

namespace syntra {

Metric metric_pearson() {
  return {.reads = Metric::Reads::kScores,
          .values = {"pearson"},
          .compute = [](std::span<const Judgement> examples, int) -> std::vector<double> {
            return {100 * Pearson(ExpectedOf(examples), PredictedOf(examples))};
          }};
}

}  // namespace syntra
