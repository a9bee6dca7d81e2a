// SPDX-License-Identifier: Apache-2.0
#include "dist/tree_sum.h"

#include <gtest/gtest.h>

#include <vector>

namespace syntra {
namespace {

// Values whose sum shows its order: 1e8 swallows a small neighbour.
TEST(TreeSum, FollowsTheTree) {
  const std::vector<float> values = {1e8f, 3, 5, 7, 11, 13, 17};
  std::vector<const float*> sources;
  for (const float& value : values) sources.push_back(&value);
  const auto sum = [&](size_t first, size_t count) {
    float out;
    TreeSum<float>(std::span(sources).subspan(first, count), &out, 1);
    return out;
  };
  const auto& v = values;
  EXPECT_EQ(sum(0, 1), v[0]);
  EXPECT_EQ(sum(0, 3), (v[0] + v[1]) + v[2]);
  EXPECT_EQ(sum(0, 4), (v[0] + v[1]) + (v[2] + v[3]));
  EXPECT_EQ(sum(0, 7), ((v[0] + v[1]) + (v[2] + v[3])) + ((v[4] + v[5]) + v[6]));
  // Subtrees of a power of two are whole.
  EXPECT_EQ(sum(0, 6), sum(0, 4) + sum(4, 2));
}

TEST(TreeSum, OutputMayBeASource) {
  for (int64_t count : {1, 1023, 1024, 1025, 5000}) {
    std::vector<std::vector<double>> inputs(5, std::vector<double>(count));
    for (int s = 0; s < 5; ++s) {
      for (int64_t i = 0; i < count; ++i) inputs[s][i] = 0.1 * s + 1e-3 * i;
    }
    std::vector<const double*> sources;
    for (const auto& input : inputs) sources.push_back(input.data());
    std::vector<double> expected(count);
    TreeSum<double>(sources, expected.data(), count);
    TreeSum<double>(sources, inputs[3].data(), count);
    EXPECT_EQ(inputs[3], expected);
  }
}

TEST(TreeSum, OfRows) {
  const std::vector<double> table{1, 10, 2, 20, 4, 40};
  std::vector<double> sum(2);
  TreeSumRows(table, sum);
  EXPECT_EQ(sum, (std::vector<double>{7, 70}));
  TreeSumRows({}, {});
}

}  // namespace
}  // namespace syntra
