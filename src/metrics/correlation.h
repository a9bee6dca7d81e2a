// SPDX-License-Identifier: Apache-2.0
// Correlations of two rows of numbers.
#pragma once

#include <span>
#include <vector>

#include "metrics/metric.h"

namespace syntra {

// Pearson's correlation of rows of the same length, in -1..1. Where one of them is constant, a
// single number included, there is no correlation (scipy: NaN), and it is 0.
double Pearson(std::span<const double> x, std::span<const double> y);

// Ranks from 1; numbers that are equal share the mean of their ranks.
std::vector<double> Ranks(std::span<const double> numbers);

std::vector<double> ExpectedOf(std::span<const Judgement> examples);
std::vector<double> PredictedOf(std::span<const Judgement> examples);

}  // namespace syntra
