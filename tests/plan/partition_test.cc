// SPDX-License-Identifier: Apache-2.0
#include "plan/partition.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

namespace syntra {
namespace {

std::vector<std::vector<int64_t>> OfAllRanks(int64_t micro_batches, int ranks) {
  const BatchPartition partition{2 * micro_batches, 2 * micro_batches / ranks, 2};
  std::vector<std::vector<int64_t>> of_ranks;
  for (int rank = 0; rank < ranks; ++rank) {
    of_ranks.push_back(partition.MixedMicroBatches(rank));
  }
  return of_ranks;
}

// Each micro-batch once, and at any number of ranks in the same order: train.reduction EXACT adds
// their gradients in this order.
TEST(BatchPartition, RanksShareOneOrderOfMicroBatches) {
  for (const int64_t count : {1, 2, 3, 6, 8, 12, 32}) {
    const std::vector<int64_t> order = OfAllRanks(count, 1).front();
    std::vector<int64_t> sorted = order, all(count);
    std::ranges::sort(sorted);
    std::iota(all.begin(), all.end(), 0);
    EXPECT_EQ(sorted, all);
    for (const int ranks : {2, 3, 4, 8}) {
      if (count % ranks != 0) continue;
      std::vector<int64_t> joined;
      for (const std::vector<int64_t>& mine : OfAllRanks(count, ranks)) {
        joined.insert(joined.end(), mine.begin(), mine.end());
      }
      EXPECT_EQ(joined, order) << ranks << " ranks";
    }
  }
}

// One of the shortest and one of the longest each, so that no rank waits long for another.
TEST(BatchPartition, EachRankHasShortAndLongMicroBatches) {
  for (const int ranks : {2, 4, 8}) {
    for (const std::vector<int64_t>& mine : OfAllRanks(32, ranks)) {
      EXPECT_LT(std::ranges::min(mine), ranks);
      EXPECT_GE(std::ranges::max(mine), 32 - ranks);
    }
  }
}

}  // namespace
}  // namespace syntra
