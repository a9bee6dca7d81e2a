// SPDX-License-Identifier: Apache-2.0
#include "run/rank_names.h"

#include <gtest/gtest.h>

#include <vector>

namespace syntra {
namespace {

TEST(RankNames, RunsOfRanks) {
  EXPECT_EQ(NameRanks(std::vector{3}), "rank 3");
  EXPECT_EQ(NameRanks(std::vector{1, 2, 3, 4, 7}), "ranks 1-4, 7");
}

TEST(RankNames, ByHost) {
  const std::vector<std::string> hosts{"a", "a", "b", "b", "a", "c"};
  EXPECT_EQ(NameRanks(std::vector{2, 3}, hosts), "ranks 2-3 on b");
  EXPECT_EQ(NameRanks(std::vector{0, 1, 3, 4, 5}, hosts),
            "ranks 0-1, 4 on a; rank 3 on b; rank 5 on c");
  EXPECT_EQ(NameRanks(std::vector{0, 5}, {}), "ranks 0, 5");
}

TEST(RankNames, NoMoreHostsThanCanBeRead) {
  std::vector<std::string> hosts;
  std::vector<int> ranks;
  for (int rank = 0; rank < 23; ++rank) {
    hosts.push_back("node" + std::to_string(rank));
    ranks.push_back(rank);
  }
  const std::string names = NameRanks(ranks, hosts);
  EXPECT_TRUE(names.ends_with("rank 19 on node19; and on 3 more hosts")) << names;
}

}  // namespace
}  // namespace syntra
