// SPDX-License-Identifier: Apache-2.0
#include "base/median.h"

#include <gtest/gtest.h>

#include <limits>

namespace syntra {
namespace {

TEST(Median, IsTheMiddleOne) {
  EXPECT_EQ(Median({3}), 3);
  EXPECT_EQ(Median({9, -1, 4}), 4);
  EXPECT_EQ(Median({5, 5, 1, 5, 2}), 5);
}

TEST(Median, OfAnEvenCountIsTheMeanOfTheTwoInTheMiddle) {
  EXPECT_EQ(Median({8, 2}), 5);
  EXPECT_EQ(Median({100, 1, 3, 2}), 2.5);
}

TEST(Median, DoesNotOverflow) {
  const double largest = std::numeric_limits<double>::max();
  EXPECT_EQ(Median({largest, largest}), largest);
}

}  // namespace
}  // namespace syntra
