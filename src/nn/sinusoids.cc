// SPDX-License-Identifier: Apache-2.0
#include "nn/sinusoids.h"

#include <algorithm>
#include <cmath>

namespace syntra {
namespace {

// Where a column of the table lies among its sinusoids.
struct Column {
  int64_t frequency;  // from the fastest on
  bool is_cosine;
};

Column ColumnOf(SinusoidalPositions::Layout layout, int64_t column, int64_t frequencies) {
  if (layout == SinusoidalPositions::INTERLEAVED) return {column / 2, column % 2 == 1};
  return {column % frequencies, column >= frequencies};
}

}  // namespace

std::vector<float> SinusoidTable(SinusoidalPositions::Layout layout, int64_t length,
                                 int64_t width) {
  const int64_t frequencies = width / 2;
  // The wavelengths grow from 2 pi, by Tensor2Tensor's rule up to 10000 * 2 pi.
  const int64_t intervals = layout == SinusoidalPositions::INTERLEAVED
                                ? frequencies
                                : std::max<int64_t>(frequencies - 1, 1);
  std::vector<float> table(length * width);
  for (int64_t i = 0; i < length * width; ++i) {
    const Column column = ColumnOf(layout, i % width, frequencies);
    const double exponent = static_cast<double>(column.frequency) / static_cast<double>(intervals);
    const double angle = static_cast<double>(i / width) * std::pow(10000.0, -exponent);
    table[i] = static_cast<float>(column.is_cosine ? std::cos(angle) : std::sin(angle));
  }
  return table;
}

}  // namespace syntra
