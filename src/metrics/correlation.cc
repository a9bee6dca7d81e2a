// SPDX-License-Identifier: Apache-2.0
#include "metrics/correlation.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace syntra {
namespace {

// Distances from the mean over the root of the sum of their squares; empty if all numbers are
// equal.
std::vector<double> Standardised(std::span<const double> numbers) {
  const auto [least, most] = std::ranges::minmax(numbers);
  if (least == most) return {};
  // The largest becomes about 1, exactly, so that nothing below over- or underflows.
  const int exponent = std::ilogb(std::max(std::abs(least), std::abs(most)));
  std::vector<double> rest;
  for (const double number : numbers) rest.push_back(std::scalbn(number, -exponent));
  const double count = static_cast<double>(rest.size());
  const double mean = std::accumulate(rest.begin(), rest.end(), 0.0) / count;
  for (double& one : rest) one -= mean;
  const double norm = std::sqrt(std::inner_product(rest.begin(), rest.end(), rest.begin(), 0.0));
  for (double& one : rest) one /= norm;
  return rest;
}

}  // namespace

double Pearson(std::span<const double> x, std::span<const double> y) {
  const std::vector<double> a = Standardised(x), b = Standardised(y);
  if (a.empty() || b.empty()) return 0;
  return std::clamp(std::inner_product(a.begin(), a.end(), b.begin(), 0.0), -1.0, 1.0);
}

std::vector<double> Ranks(std::span<const double> numbers) {
  std::vector<size_t> order(numbers.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::sort(order, {}, [&](size_t i) { return numbers[i]; });
  std::vector<double> ranks(numbers.size());
  for (size_t first = 0, last; first < order.size(); first = last) {
    last = first + 1;
    while (last < order.size() && numbers[order[last]] == numbers[order[first]]) ++last;
    // The ranks first + 1 to last.
    for (size_t i = first; i < last; ++i) {
      ranks[order[i]] = static_cast<double>(first + 1 + last) / 2;
    }
  }
  return ranks;
}

std::vector<double> ExpectedOf(std::span<const Judgement> examples) {
  std::vector<double> numbers;
  for (const Judgement& one : examples) numbers.push_back(one.expected);
  return numbers;
}

std::vector<double> PredictedOf(std::span<const Judgement> examples) {
  std::vector<double> numbers;
  for (const Judgement& one : examples) numbers.push_back(one.predicted);
  return numbers;
}

}  // namespace syntra
