// SPDX-License-Identifier: Apache-2.0
// The middle of some numbers, which a few unusual ones hardly move.
#pragma once

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <vector>

#include "base/error.h"

namespace syntra {

// The middle one of `values` in order; of an even count, the mean of the two in the middle. There
// must be at least one.
inline double Median(std::vector<double> values) {
  SYNTRA_CHECK(!values.empty(), "the median of nothing");
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  if (values.size() % 2 == 1) return *middle;
  return std::midpoint(*std::max_element(values.begin(), middle), *middle);
}

}  // namespace syntra
