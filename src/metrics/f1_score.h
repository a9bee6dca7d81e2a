// SPDX-License-Identifier: Apache-2.0
// F1: the harmonic mean of precision and recall.
#pragma once

#include "metrics/metric.h"

namespace syntra {

// F1 in 0..1 of `found` things where there were `wanted`, `both` of them the same:
// 2 both / (found + wanted). 0 if nothing was found or wanted, as scikit-learn has it.
double F1Score(double both, double found, double wanted);

// F1 of class 1 in percent, with labels 0 and 1. A text that is not a label counts as the opposite
// of what was expected (f1_score_with_invalid in t5/evaluation/metrics.py).
double BinaryF1(std::span<const Judgement> examples);

}  // namespace syntra
