// SPDX-License-Identifier: Apache-2.0
#include "metrics/metric.h"

#include <algorithm>
#include <cmath>

#include "base/name_table.h"

namespace syntra {

#define SYNTRA_METRIC(name) Metric metric_##name();
#include "metrics/metrics.def"
#undef SYNTRA_METRIC

namespace {

const NameTable<Metric>& Metrics() {
  static const NameTable<Metric> table = [] {
    NameTable<Metric> metrics("metric");
    const auto add = [&](const std::string& name, Metric metric) {
      metric.name = name;
      metrics.Add(name, std::move(metric));
    };
#define SYNTRA_METRIC(name) add(#name, metric_##name());
#include "metrics/metrics.def"
#undef SYNTRA_METRIC
    return metrics;
  }();
  return table;
}

bool IsClass(double index, int classes) {
  return index == std::floor(index) && index >= 0 && (classes == 0 || index < classes);
}

// Whether a task has filled in what a metric of this kind reads.
bool IsSound(const Judgement& example, Metric::Reads reads, int classes) {
  switch (reads) {
    case Metric::Reads::kLabels:
      return IsClass(example.expected, classes) &&
             (example.predicted == -1 || IsClass(example.predicted, classes));
    case Metric::Reads::kScores:
      return std::isfinite(example.expected) && std::isfinite(example.predicted);
    case Metric::Reads::kTexts:
      return !example.accepted_texts.empty();
  }
  return false;
}

void CheckNotEmpty(std::span<const Judgement> examples, std::string_view name) {
  if (!examples.empty()) return;
  Fail(ExitCode::kData, "no examples to compute \"{}\" of; is the validation split empty?", name);
}

}  // namespace

NamedValues Metric::Compute(std::span<const Judgement> examples, int task_classes) const {
  CheckNotEmpty(examples, name);
  const int known = task_classes ? task_classes : classes;
  SYNTRA_CHECK(classes == 0 || classes == known, "{} of a task of {} labels", name, known);
  for (const Judgement& example : examples) {
    SYNTRA_CHECK(IsSound(example, reads, known),
                 "{} cannot judge {} for {} of {} labels, with {} accepted texts", name,
                 example.predicted, example.expected, known, example.accepted_texts.size());
  }
  const std::vector<double> numbers = compute(examples, known);
  SYNTRA_CHECK(numbers.size() == values.size(), "{}", name);
  NamedValues named;
  for (size_t i = 0; i < numbers.size(); ++i) {
    SYNTRA_CHECK(std::isfinite(numbers[i]), "{} is {}", values[i], numbers[i]);
    named.push_back({values[i], numbers[i]});
  }
  return named;
}

const Metric& FindMetric(std::string_view name) { return Metrics().Get(name); }

std::vector<std::string> MetricNames() { return Metrics().Names(); }

int64_t CountInvalid(std::span<const Judgement> examples) {
  return std::ranges::count(examples, -1.0, &Judgement::predicted);
}

double InvalidPercent(std::span<const Judgement> examples) {
  CheckNotEmpty(examples, "invalid");
  return 100.0 * static_cast<double>(CountInvalid(examples)) / static_cast<double>(examples.size());
}

}  // namespace syntra
