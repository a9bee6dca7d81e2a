// SPDX-License-Identifier: Apache-2.0
// Metrics: how well predictions meet what was expected, in percent, as T5 computes it
// (google-research/text-to-text-transfer-transformer, t5/evaluation/metrics.py).
//
// A metric is a row: a file src/metrics/<metric>.cc and a line in metrics.def. A task names its
// metrics in the order of the table that it appears in: MRPC is {"f1", "accuracy"}.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace syntra {

// One example and what a model made of it. A metric reads the fields that its `Reads` names.
struct Judgement {
  // Class indices from 0, or scores. A prediction of -1 is a text that is no label (kLabels), or
  // no number (kScores; t5's string_to_float).
  double expected = 0, predicted = 0;
  // Free text. Any of the accepted texts is right; there is at least one.
  std::string predicted_text;
  std::vector<std::string> accepted_texts;
  // What the example is a part or a repetition of, such as the question of a MultiRC answer. An
  // empty name: the example is a group of its own.
  std::string group;
};

// A value of an evaluation, in percent.
struct NamedValue {
  std::string name;
  double value = 0;
};

struct Metric {
  enum class Reads { kLabels, kScores, kTexts };
  // `classes`: how many labels the task has; only macro_f1 asks.
  using Compute = std::vector<double>(std::span<const Judgement> examples, int classes);

  std::string name;
  Reads reads = Reads::kLabels;
  std::vector<std::string> values;  // names, in the order of the paper's tables
  Compute* compute = nullptr;       // a number for each of them; more is better, 100 is perfect

  // The values of `examples`: never NaN. No order of the examples changes them by more than the
  // rounding of doubles. Throws Error(kData) if there are no examples.
  std::vector<NamedValue> operator()(std::span<const Judgement> examples, int classes = 0) const;
};

// Throws Error(kConfig) if there is no such metric.
const Metric& FindMetric(std::string_view name);

// In alphabetical order.
std::vector<std::string> MetricNames();

// How many predictions are no label, or no number, in percent. Not a score: reported beside the
// metrics of a task under the name "invalid", and part of no average. Throws as a metric does.
double InvalidPercent(std::span<const Judgement> examples);

}  // namespace syntra
