// SPDX-License-Identifier: Apache-2.0
// Metrics: how well predictions meet what was expected, in percent, as T5 computes it
// (google-research/text-to-text-transfer-transformer, t5/evaluation/metrics.py).
//
// A task names its metrics in the order of the paper's tables: MRPC is {"f1", "accuracy"}.
// src/metrics/README.md lists the steps to add one.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/named_value.h"

namespace syntra {

// One example and what a model made of it. A metric reads the fields that its `reads` names.
struct Judgement {
  // Class indices from 0, or scores. A prediction of -1 is a text that is not a label (kLabels), or
  // no number (kScores; `ScoreOfText` makes it).
  double expected = 0, predicted = 0;
  // Free text. Any of the accepted texts is right; there is at least one.
  std::string predicted_text;
  std::vector<std::string> accepted_texts;
  // Names the group that the example belongs to, such as the question of a MultiRC answer or the
  // example that it repeats. Empty: the example is a group of its own.
  std::string group;
};

struct Metric {
  enum class Reads { kLabels, kScores, kTexts };
  // One number for each of `values`; more is better, 100 is perfect. There is at least one example.
  using Function = std::vector<double>(std::span<const Judgement> examples, int classes);

  Reads reads = Reads::kLabels;
  std::vector<std::string> values;  // their names, in the order of the paper's tables
  Function* compute = nullptr;
  int classes = 0;   // how many labels a task must have; 0: any number. Of two, 1 is positive
  std::string name;  // the row's, given by the table

  // `classes` is the number of labels of the task, and 0 where it has none. No value is NaN, and
  // the order of the examples changes a value by no more than the rounding of doubles. Throws
  // Error(kData) if there are no examples.
  NamedValues Compute(std::span<const Judgement> examples, int classes = 0) const;
};

// Throws Error(kConfig) if there is no such metric.
const Metric& FindMetric(std::string_view name);

// In alphabetical order.
std::vector<std::string> MetricNames();

// How many predictions are not a label, or not a number.
int64_t CountInvalid(std::span<const Judgement> examples);

// CountInvalid in percent. It is no score: it is reported beside the metrics of a task, under the
// name "invalid", and is part of no average. Throws Error(kData) if there are no examples.
double InvalidPercent(std::span<const Judgement> examples);

}  // namespace syntra
