// SPDX-License-Identifier: Apache-2.0
// Averages of benchmarks, checked with rows that are in print (Tay et al. 2021, the tables of GLUE
// and SuperGLUE), and spreads over seeds.
#include "metrics/average.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace syntra {
namespace {

// A row's numbers task by task, and their average to two places: the paper prints one, and rounds
// 82.86 to 82.8 and 84.04 to 84.1.
struct Row {
  const char* model;
  std::vector<std::vector<double>> tasks;
  double average;
};

// CoLA, SST, MRPC F1 and accuracy, STS-B, QQP F1 and accuracy, MNLI m and mm, QNLI, RTE.
const Row kGlue[] = {
    {"T5 base",
     {{53.1}, {92.2}, {92.0, 88.7}, {89.1, 88.9}, {88.2, 91.2}, {84.7, 85.0}, {91.7}, {76.9}},
     83.47},
    {"T5 base+",
     {{54.3}, {92.9}, {88.0, 83.8}, {85.2, 85.4}, {88.3, 91.2}, {84.2, 84.3}, {91.4}, {79.1}},
     82.86},
    {"R",
     {{41.2}, {91.2}, {85.9, 79.4}, {74.0, 74.3}, {85.5, 89.0}, {77.6, 78.1}, {87.6}, {59.2}},
     75.14},
    {"D",
     {{18.9}, {89.9}, {86.4, 79.4}, {75.3, 75.5}, {85.2, 88.3}, {77.4, 78.1}, {86.9}, {57.4}},
     71.99},
    {"D+V",
     {{48.6}, {92.4}, {91.2, 87.7}, {88.9, 89.0}, {88.6, 91.5}, {84.3, 84.8}, {91.7}, {75.1}},
     82.60},
    {"R+V",
     {{53.3}, {92.2}, {91.2, 87.7}, {89.3, 88.9}, {88.6, 91.4}, {85.0, 84.6}, {92.3}, {81.2}},
     84.04},
};

// BoolQ, CB F1 and accuracy, COPA, MultiRC F1a and EM, ReCoRD F1 and EM, RTE, WiC, WSC.
const Row kSuperGlue[] = {
    {"T5 base",
     {{78.2}, {72.1, 83.9}, {59.0}, {73.1, 32.1}, {71.1, 70.3}, {77.3}, {65.8}, {80.8}},
     70.30},
    {"T5 base+",
     {{79.3}, {81.1, 87.5}, {60.0}, {75.1, 34.4}, {71.7, 70.7}, {80.5}, {64.6}, {71.2}},
     70.73},
    {"R",
     {{69.5}, {54.6, 73.2}, {60.0}, {63.0, 15.7}, {58.4, 57.4}, {67.5}, {64.4}, {66.3}},
     61.11},
    {"D",
     {{69.5}, {51.7, 71.4}, {51.0}, {66.0, 15.8}, {54.1, 53.0}, {67.5}, {65.2}, {58.7}},
     58.49},
    {"D+V",
     {{79.3}, {74.3, 85.7}, {64.0}, {73.8, 33.7}, {69.9, 69.2}, {78.7}, {64.3}, {68.3}},
     69.74},
    {"R+V",
     {{79.3}, {82.7, 91.1}, {64.0}, {74.3, 34.9}, {70.8, 69.9}, {82.7}, {64.6}, {75.0}},
     72.18},
};

void ExpectAverage(const Row& row) {
  std::vector<NamedValues> tasks;
  for (const std::vector<double>& values : row.tasks) {
    NamedValues& task = tasks.emplace_back();
    for (const double value : values) task.push_back({"", value});
  }
  ASSERT_EQ(tasks.size(), 8u);
  EXPECT_NEAR(BenchmarkAverage(tasks), row.average, 0.00501) << row.model;
}

TEST(Average, OfGlueIsThePapers) {
  for (const Row& row : kGlue) ExpectAverage(row);
}

TEST(Average, OfSuperGlueIsThePapers) {
  for (const Row& row : kSuperGlue) ExpectAverage(row);
}

TEST(Average, OfNothingIsABug) {
  EXPECT_THROW(BenchmarkAverage({}), Error);
  EXPECT_THROW(BenchmarkAverage(std::vector<NamedValues>(1)), Error);
}

// statistics.stdev of Python.
TEST(Spread, IsTheSamples) {
  const std::vector<double> values = {56.3, 53.5, 57.7};
  EXPECT_NEAR(SpreadOf(values).mean, 55.833333333333336, 1e-12);
  EXPECT_NEAR(SpreadOf(values).deviation, 2.138535324312726, 1e-12);
  EXPECT_EQ(SpreadOf(std::vector{4.0}).mean, 4);
  EXPECT_EQ(SpreadOf(std::vector{4.0}).deviation, 0);
  EXPECT_THROW(SpreadOf({}), Error);
}

}  // namespace
}  // namespace syntra
