// SPDX-License-Identifier: Apache-2.0
// What holds for every row of metrics.def.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "base/error.h"
#include "metrics/metric.h"
#include "tests/base/error_of.h"

namespace syntra {
namespace {

class MetricContract : public testing::TestWithParam<std::string> {
 protected:
  const Metric& metric() const { return FindMetric(GetParam()); }
  int classes() const {
    if (metric().reads != Metric::Reads::kLabels) return 0;
    return metric().classes ? metric().classes : 4;
  }

  // Long enough for BLEU, which sees nothing in less than four words.
  std::string Text() {
    std::string text;
    for (const int words = 4 + Index(6); std::ranges::count(text, ' ') < words;) {
      text += "word" + std::to_string(Index(9)) + ' ';
    }
    return text;
  }
  int Index(int below) { return static_cast<int>(random_() % below); }

  // Examples in which everything is right. Every class is there; scores differ.
  std::vector<Judgement> Perfect(int count) {
    std::vector<Judgement> examples(count);
    for (int i = 0; i < count; ++i) {
      Judgement& one = examples[i];
      one.expected = classes() ? i % classes() : 0.2 * i;
      one.predicted = one.expected;
      one.accepted_texts = {Text(), Text()};
      one.predicted_text = one.accepted_texts[1];
      one.group = i % 3 == 0 ? "" : "question " + std::to_string(i / 4);
    }
    return examples;
  }

  // Some predictions are right, some wrong, some neither.
  std::vector<Judgement> Mixed(int count) {
    std::vector<Judgement> examples = Perfect(count);
    for (Judgement& one : examples) {
      if (Index(3) == 0) one.predicted = Index(3) == 0 ? -1 : Index(classes() ? classes() : 5);
      if (Index(2) == 0) one.predicted_text = Index(3) == 0 ? "" : Text();
    }
    return examples;
  }

  // Examples of one group are answered alike, since metrics of texts take the first of them.
  static void AnswerAlikeInGroups(std::vector<Judgement>* examples) {
    for (Judgement& one : *examples) {
      const auto first = std::ranges::find(*examples, one.group, &Judgement::group);
      if (one.group.empty()) continue;
      one.predicted_text = first->predicted_text;
      one.accepted_texts = first->accepted_texts;
    }
  }

  void ExpectValues(const std::vector<Judgement>& examples, double least, double most) {
    const NamedValues found = metric().Compute(examples, classes());
    ASSERT_EQ(found.size(), metric().values.size());
    for (size_t i = 0; i < found.size(); ++i) {
      EXPECT_EQ(found[i].name, metric().values[i]);
      EXPECT_GE(found[i].value, least - 1e-9) << found[i].name;
      EXPECT_LE(found[i].value, most + 1e-9) << found[i].name;
    }
  }

  std::mt19937 random_{12};
};

TEST_P(MetricContract, PerfectPredictionsGive100) {
  for (const int count : {4, 5, 12, 100}) ExpectValues(Perfect(count), 100, 100);
}

TEST_P(MetricContract, ValuesAreFiniteAndInPercent) {
  for (int trial = 0; trial < 50; ++trial) ExpectValues(Mixed(1 + Index(30)), -100, 100);
}

TEST_P(MetricContract, WorsePredictionsGiveLess) {
  std::vector<Judgement> examples = Perfect(100);
  NamedValues before = metric().Compute(examples, classes());
  for (const int wrong : {30, 99}) {
    for (int i = 0; i < wrong; ++i) {
      Judgement& one = examples[i];
      one.predicted = classes() ? (i + 1) % classes() : -one.expected;
      one.predicted_text = "else";
    }
    const NamedValues after = metric().Compute(examples, classes());
    for (size_t i = 0; i < after.size(); ++i) {
      EXPECT_LT(after[i].value, before[i].value) << after[i].name;
    }
    before = after;
  }
}

TEST_P(MetricContract, NothingValidIsNoSuccess) {
  std::vector<Judgement> examples = Perfect(100);
  for (Judgement& one : examples) {
    one.predicted = -1;
    one.predicted_text.clear();
  }
  ExpectValues(examples, 0, 0);
}

TEST_P(MetricContract, TheOrderOfExamplesDoesNotMatter) {
  for (int trial = 0; trial < 20; ++trial) {
    std::vector<Judgement> examples = Mixed(1 + Index(50));
    AnswerAlikeInGroups(&examples);
    const NamedValues before = metric().Compute(examples, classes());
    std::ranges::shuffle(examples, random_);
    const NamedValues after = metric().Compute(examples, classes());
    for (size_t i = 0; i < before.size(); ++i) {
      EXPECT_NEAR(after[i].value, before[i].value, 1e-9) << before[i].name;
    }
  }
}

TEST_P(MetricContract, OneValueOfEverythingIsFinite) {
  std::vector<Judgement> examples = Perfect(9);
  for (Judgement& one : examples) one.expected = one.predicted = 1;
  ExpectValues(examples, 0, 100);
  ExpectValues({examples[0]}, 0, 100);
}

TEST_P(MetricContract, NoExamplesAreAnError) {
  const std::string error = ErrorOf([&] { metric().Compute({}, classes()); }, ExitCode::kData);
  EXPECT_NE(error.find(GetParam()), std::string::npos) << error;
}

INSTANTIATE_TEST_SUITE_P(All, MetricContract, testing::ValuesIn(MetricNames()),
                         [](const auto& row) { return row.param; });

}  // namespace
}  // namespace syntra
