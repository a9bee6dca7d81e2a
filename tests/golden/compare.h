// SPDX-License-Identifier: Apache-2.0
// Compares values with golden fixtures: the largest difference relative to the largest stored
// value.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <string>
#include <vector>

namespace syntra {

// An absolute tolerance for tensors whose stored values are all tiny (sums that cancel).
inline constexpr double kGoldenFloor = 1e-7;

template <typename Found, typename Stored>
void ExpectGolden(std::span<const Found> found, const std::vector<Stored>& stored, double tolerance,
                  const std::string& what) {
  ASSERT_EQ(found.size(), stored.size()) << what;
  double largest = 0, difference = 0;
  for (size_t i = 0; i < stored.size(); ++i) {
    ASSERT_TRUE(std::isfinite(static_cast<double>(found[i]))) << what << " element " << i;
    largest = std::max(largest, std::abs(static_cast<double>(stored[i])));
    difference = std::max(difference, std::abs(static_cast<double>(found[i]) - stored[i]));
  }
  EXPECT_LE(difference, tolerance * largest + kGoldenFloor * tolerance / 1e-5) << what;
}

}  // namespace syntra
