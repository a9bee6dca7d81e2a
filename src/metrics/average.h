// SPDX-License-Identifier: Apache-2.0
// Averages: over a benchmark's tasks, and over seeds.
#pragma once

#include <span>

#include "metrics/metric.h"

namespace syntra {

// The mean over tasks of the mean over each task's values: of GLUE and SuperGLUE as T5 (Raffel et
// al. 2020) and Synthesizer (Tay et al. 2021) print it. MNLI's matched and mismatched accuracies
// are two values of one task. WNLI is not one of their tasks; the caller leaves it out. There is at
// least one task, and each has a value.
double BenchmarkAverage(std::span<const NamedValues> tasks);

// The mean of a value over seeds, and the sample's standard deviation (division by n - 1; 0 for a
// single seed). There is at least one value.
struct Spread {
  double mean = 0, deviation = 0;
};
Spread SpreadOf(std::span<const double> values);

}  // namespace syntra
