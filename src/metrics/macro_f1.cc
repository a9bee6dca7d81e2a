// SPDX-License-Identifier: Apache-2.0
// The unweighted mean of the F1 of each of a task's classes. A class that is neither expected nor
// predicted has an F1 of 0; a text that is no label is no prediction of any class
// (mean_multiclass_f1 in t5/evaluation/metrics.py).
#include "base/error.h"
#include "metrics/f1_score.h"

namespace syntra {
namespace {

std::vector<double> MacroF1(std::span<const Judgement> examples, int classes) {
  SYNTRA_CHECK(classes > 0, "macro_f1 without the number of classes");
  double sum = 0;
  for (int label = 0; label < classes; ++label) {
    double both = 0, found = 0, wanted = 0;
    for (const Judgement& one : examples) {
      both += one.predicted == label && one.expected == label;
      found += one.predicted == label;
      wanted += one.expected == label;
    }
    sum += F1Score(both, found, wanted);
  }
  return {100 * sum / classes};
}

}  // namespace

Metric metric_macro_f1() {
  return {.reads = Metric::Reads::kLabels, .values = {"macro_f1"}, .compute = MacroF1};
}

}  // namespace syntra
