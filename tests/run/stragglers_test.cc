// SPDX-License-Identifier: Apache-2.0
#include "run/stragglers.h"

#include <gtest/gtest.h>

namespace syntra {
namespace {

class StragglersTest : public testing::Test {
 protected:
  // `count` steps of these ranks; the warnings.
  std::vector<std::string> Add(int count, const std::vector<double>& seconds) {
    std::vector<std::string> warnings;
    for (int i = 0; i < count; ++i, now_ += 1) {
      if (const auto warning = stragglers_.Add(seconds)) warnings.push_back(*warning);
    }
    return warnings;
  }

  double now_ = 0;
  Stragglers stragglers_{{"n0", "n0", "n1", "n1"}, [this] { return now_; }};
};

TEST_F(StragglersTest, NamesRankHostAndHowMuch) {
  const auto warnings = Add(20, {1, 1.1, 2.5, 0.9});
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_EQ(
      warnings[0],
      "rank 2 on n1 slows down all 4 ranks: its gradients are ready 2.5 s into a step, those of "
      "the others after 1 s (median; in 16 of the last 16 steps)");
}

TEST_F(StragglersTest, ALittleIsNothing) {
  EXPECT_TRUE(Add(1000, {1, 1.1, 1.24, 0.9}).empty());
  // Steps of milliseconds differ by much and cost nothing.
  EXPECT_TRUE(Add(1000, {0.001, 0.001, 0.009, 0.001}).empty());
}

TEST_F(StragglersTest, NowAndThenIsNothing) {
  for (int round = 0; round < 20; ++round) {
    EXPECT_TRUE(Add(15, {1, 1, 9, 1}).empty());
    EXPECT_TRUE(Add(5, {1, 1, 1, 1}).empty());
  }
}

TEST_F(StragglersTest, TakingTurnsIsNothing) {
  for (int round = 0; round < 100; ++round) {
    for (int slow = 0; slow < 4; ++slow) {
      std::vector<double> seconds(4, 1);
      seconds[slow] = 2;
      EXPECT_TRUE(Add(1, seconds).empty());
    }
  }
}

TEST_F(StragglersTest, OneWarningInAWhile) {
  EXPECT_EQ(Add(615, {1, 1, 2, 1}).size(), 1u);
  EXPECT_EQ(Add(1, {1, 1, 2, 1}).size(), 1u);
  EXPECT_EQ(Add(599, {1, 1, 2, 1}).size(), 0u);
}

// Both ranks of a slow machine are slow; the slower one is named.
TEST_F(StragglersTest, TwoSlowRanks) {
  const auto warnings = Add(20, {1, 1, 2, 2.1});
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_EQ(warnings[0].find("rank 3 on n1"), 0u) << warnings[0];
}

TEST(Stragglers, OfTwoAndOfOne) {
  Stragglers two({"a", "b"}), one({"a"});
  std::string warning;
  for (int i = 0; i < 20; ++i) {
    warning += two.Add(std::vector<double>{3, 1}).value_or("");
    EXPECT_FALSE(one.Add(std::vector<double>{3}));
  }
  EXPECT_EQ(warning.find("rank 0 on a slows down all 2 ranks: its gradients are ready 3 s"), 0u)
      << warning;
}

}  // namespace
}  // namespace syntra
