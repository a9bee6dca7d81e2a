// SPDX-License-Identifier: Apache-2.0
#include "core/orthogonal.h"

#include <cmath>
#include <numeric>
#include <vector>

#include "core/random_fill.h"

namespace syntra {
namespace {

double Dot(std::span<const double> a, std::span<const double> b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

// Makes `x` orthogonal to the unit vectors of `basis`; its length stays.
void Straighten(const std::vector<std::vector<double>>& basis, std::span<double> x) {
  const double length = std::sqrt(Dot(x, x));
  // The second time removes what rounding leaves after the first.
  for (int time = 0; time < 2; ++time) {
    for (const std::vector<double>& unit : basis) {
      const double part = Dot(unit, x);
      for (size_t i = 0; i < x.size(); ++i) x[i] -= part * unit[i];
    }
  }
  const double factor = length / std::sqrt(Dot(x, x));
  for (double& number : x) number *= factor;
}

}  // namespace

void FillOrthogonal(RandomKey key, int64_t rows, std::span<float> values) {
  FillNormal(key, 1, 0, values);
  const int64_t columns = std::ssize(values) / rows;
  std::vector<std::vector<double>> basis;
  std::vector<double> column(rows);
  for (int64_t c = 0; c < columns; ++c) {
    if (c % rows == 0) basis.clear();
    for (int64_t i = 0; i < rows; ++i) column[i] = values[i * columns + c];
    Straighten(basis, column);
    for (int64_t i = 0; i < rows; ++i) values[i * columns + c] = static_cast<float>(column[i]);
    const double length = std::sqrt(Dot(column, column));
    basis.push_back(column);
    for (double& number : basis.back()) number /= length;
  }
}

}  // namespace syntra
