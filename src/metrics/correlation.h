// SPDX-License-Identifier: Apache-2.0
// Pearson correlation of two lists of numbers, and ranks, from which that of Spearman follows.
#pragma once

#include <span>
#include <vector>

#include "metrics/metric.h"

namespace syntra {

// Pearson's correlation of two lists of the same length, in -1..1. If one of them is constant, as a
// single number is, the correlation is undefined (SciPy: NaN), and the result is 0.
double Pearson(std::span<const double> x, std::span<const double> y);

// Ranks from 1; numbers that are equal share the mean of their ranks.
std::vector<double> Ranks(std::span<const double> numbers);

std::vector<double> ExpectedOf(std::span<const Judgement> examples);
std::vector<double> PredictedOf(std::span<const Judgement> examples);

}  // namespace syntra
