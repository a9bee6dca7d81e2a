// SPDX-License-Identifier: Apache-2.0
// Results of runs that differ in their seed: a mean is of all runs, or there is none.
#include <gtest/gtest.h>

#include "cli/comparison.h"
#include "cli/seeds.h"

namespace syntra {
namespace {

TEST(SeveralRuns, ResultsHaveTheirMeanWhereEveryRunHasThem) {
  const Json runs[] = {
      {{"tasks", {{"a", {{"f1", 10}, {"em", 4}}}, {"b", {{"accuracy", 80}}}}}, {"average", 40}},
      {{"tasks", {{"a", {{"f1", 14}, {"em", nullptr}}}}}, {"average", nullptr}}};
  const Json all = SpreadOfRuns(runs);
  EXPECT_EQ(all["tasks"], (Json{{"a", {{"f1", 12.0}}}}));
  EXPECT_NEAR(all["deviations"]["a"]["f1"], 2.8284271, 1e-6);  // of a sample
  EXPECT_TRUE(all["average"].is_null());
  EXPECT_TRUE(all["average_deviation"].is_null());
  EXPECT_EQ(all["seeds"], 2);
  EXPECT_EQ(SpreadOfRuns(std::span(runs).first(1))["average"], 40.0);
}

TEST(SeveralRuns, CurvesHaveTheStepsThatEveryRunHas) {
  MixerResult mixer;
  mixer.histories.resize(2);
  mixer.histories[0].validation = {{0, 9}, {10, 6}, {20, 5}};
  mixer.histories[1].validation = {{0, 9}, {10, 8}, {30, 4}};
  mixer.histories[0].metrics["a/f1"] = {{10, 50}, {20, 60}};
  const auto curves = mixer.Curves();
  ASSERT_EQ(curves.size(), 1u);  // one run alone has the metric
  const Curve& curve = curves.at("validation log-perplexity");
  ASSERT_EQ(curve.size(), 1u);
  EXPECT_EQ(curve[0].x, 10);
  EXPECT_EQ(curve[0].y, 7);
}

}  // namespace
}  // namespace syntra
