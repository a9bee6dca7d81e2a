// SPDX-License-Identifier: Apache-2.0
#include "dist/shares.h"

#include <gtest/gtest.h>

namespace syntra {
namespace {

std::vector<int64_t> Ends(const Shares& shares) {
  std::vector<int64_t> ends;
  for (int rank = 0; rank < shares.ranks(); ++rank) ends.push_back(shares.end(rank));
  return ends;
}

TEST(Shares, EvenOnesAreMultiplesOfTheirGrain) {
  EXPECT_EQ(Ends(Shares::Even(12, 3)), (std::vector<int64_t>{4, 8, 12}));
  EXPECT_EQ(Ends(Shares::Even(13, 3)), (std::vector<int64_t>{5, 10, 13}));
  EXPECT_EQ(Ends(Shares::Even(100, 4, 16)), (std::vector<int64_t>{32, 64, 96, 100}));
  EXPECT_EQ(Ends(Shares::Even(3, 4, 2)), (std::vector<int64_t>{2, 3, 3, 3}));
  EXPECT_TRUE(Shares::Even(12, 3).are_equal());
  EXPECT_FALSE(Shares::Even(13, 3).are_equal());
}

TEST(Shares, OfAPieceAreWhatLiesInIt) {
  const Shares shares({3, 3, 10, 12});
  EXPECT_EQ(Ends(shares.Within(2, 11)), (std::vector<int64_t>{1, 1, 8, 9}));
  EXPECT_EQ(Ends(shares.Within(4, 9)), (std::vector<int64_t>{0, 0, 5, 5}));
  EXPECT_EQ(shares.largest(), 7);
  EXPECT_EQ(shares.size(1), 0);
}

TEST(Shares, InOtherUnits) {
  const Shares shares({4, 8, 12});
  EXPECT_EQ(Ends(shares.Times(3)), (std::vector<int64_t>{12, 24, 36}));
}

TEST(Shares, LieOneBehindTheOther) {
  EXPECT_THROW(Shares({}), Error);
  EXPECT_THROW(Shares({3, 2}), Error);
  EXPECT_THROW(Shares({-1, 2}), Error);
}

}  // namespace
}  // namespace syntra
