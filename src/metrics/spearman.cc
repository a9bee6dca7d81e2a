// SPDX-License-Identifier: Apache-2.0
// Spearman's correlation: Pearson's of the ranks. Equal scores share the mean of their ranks.
#include "metrics/correlation.h"

namespace syntra {

Metric metric_spearman() {
  return {.reads = Metric::Reads::kScores,
          .values = {"spearman"},
          .compute = [](std::span<const Judgement> examples, int) -> std::vector<double> {
            return {100 * Pearson(Ranks(ExpectedOf(examples)), Ranks(PredictedOf(examples)))};
          }};
}

}  // namespace syntra
