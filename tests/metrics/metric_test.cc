// SPDX-License-Identifier: Apache-2.0
// The table of metrics, what is no metric's input, and numbers beyond those of the fixtures.
#include "metrics/metric.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/error.h"
#include "tests/base/error_of.h"

namespace syntra {
namespace {

TEST(Metrics, AMisspeltNameIsAnErrorWithASuggestion) {
  const std::string message = ErrorOf([] { FindMetric("acuracy"); }, ExitCode::kConfig);
  EXPECT_EQ(message, "unknown metric \"acuracy\"; did you mean \"accuracy\"?");
}

TEST(Metrics, WhatATaskDidNotFillInIsABug) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<std::pair<std::string, Judgement>> wrong = {
      {"accuracy", {.expected = -1, .predicted = 0}},
      {"accuracy", {.expected = 0.5}},
      {"accuracy", {.predicted = -2}},
      {"f1", {.expected = 2}},
      {"macro_f1", {.expected = 3}},
      {"pearson", {.predicted = nan}},
      {"spearman", {.expected = INFINITY}},
      {"squad", {.predicted_text = "no answers"}}};
  for (const auto& [name, example] : wrong) {
    const int classes = name == "macro_f1" ? 3 : 0;
    ErrorOf([&] { FindMetric(name).Compute({&example, 1}, classes); }, ExitCode::kInternal);
  }
  const Judgement example;
  ErrorOf([&] { FindMetric("f1").Compute({&example, 1}, 3); }, ExitCode::kInternal);
  ErrorOf([&] { FindMetric("macro_f1").Compute({&example, 1}); }, ExitCode::kInternal);
}

TEST(Metrics, InvalidPredictionsAreCounted) {
  std::vector<Judgement> examples(8);
  EXPECT_EQ(InvalidPercent(examples), 0);
  examples[3].predicted = -1;
  EXPECT_EQ(InvalidPercent(examples), 12.5);
  const std::string message = ErrorOf([] { InvalidPercent({}); }, ExitCode::kData);
  EXPECT_EQ(message, "no examples to compute \"invalid\" of; is the validation split empty?");
}

// A model may write any number.
TEST(Metrics, CorrelationsBearEnormousAndTinyScores) {
  const double most = std::numeric_limits<double>::max();
  const double least = std::numeric_limits<double>::denorm_min();
  for (const double unit : {1.0, most / 2, most, 1e-300, least}) {
    std::vector<Judgement> examples;
    for (const double x : {-1.0, 0.0, 1.0})
      examples.push_back({.expected = x, .predicted = unit * x});
    for (const char* name : {"pearson", "spearman"}) {
      EXPECT_NEAR(FindMetric(name).Compute(examples)[0].value, 100, 1e-9) << name << " " << unit;
    }
  }
}

}  // namespace
}  // namespace syntra
