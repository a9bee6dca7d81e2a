// SPDX-License-Identifier: Apache-2.0
// Answers of any text: every metric is a finite number, and texts are treated without harm. A line
// is a prediction and, after tabs, the accepted texts.
#include "metrics/metric.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "fuzz/target.h"
#include "metrics/score_text.h"
#include "metrics/squad_text.h"
#include "metrics/wsc_text.h"

namespace syntra {
namespace {

Judgement JudgementOf(const std::string& line) {
  std::vector<std::string> parts = Split(line, '\t');
  Judgement judgement{.predicted_text = parts[0]};
  judgement.accepted_texts.assign(parts.begin() + (parts.size() > 1), parts.end());
  judgement.group = std::to_string(line.size() % 3);
  return judgement;
}

void Compute(const Metric& metric, std::vector<Judgement> judgements) {
  for (Judgement& one : judgements) {
    if (metric.reads == Metric::Reads::kLabels) {
      one.expected = static_cast<double>(one.accepted_texts[0].size() % 2);
      one.predicted = static_cast<double>(one.predicted_text.size() % 3) - 1;
    } else {
      one.expected = ScoreOfText(one.accepted_texts[0]);
      one.predicted = ScoreOfText(one.predicted_text);
    }
  }
  const int classes = metric.reads != Metric::Reads::kLabels ? 0 : std::max(metric.classes, 2);
  for (const auto& [name, value] : metric.Compute(judgements, classes)) {
    SYNTRA_CHECK(value > -100.001 && value < 100.001, "{} is {}", name, value);
  }
}

void Run(std::string_view input) {
  std::vector<Judgement> judgements;
  for (const std::string& line : Split(input, '\n')) judgements.push_back(JudgementOf(line));
  for (const std::string& name : MetricNames()) Compute(FindMetric(name), judgements);
  for (const Judgement& one : judgements) {
    const std::string& text = one.predicted_text;
    const std::string normal = NormalizeSquad(text);
    SYNTRA_CHECK(std::isfinite(ScoreOfText(text)));
    SYNTRA_CHECK(!BeginsNoScore(text) || ScoreOfText(text) == -1, "{}", text);
    const int names = NamesReferent(text, one.accepted_texts[0]);
    SYNTRA_CHECK(names >= -1 && names <= 1);
  }
}

std::vector<std::string> Seeds() {
  return {"the cat sat\tthe cat sat on a mat\ta cat\nyes\tno\n",
          "3.5\t1_000\n-1\t2.25e1\n\xd9\xa3\t0\n",
          "The Bob's hat\tbob's hats\n\xc4\xb0\xce\xa3\t\xcf\x82 a.b\n"};
}

}  // namespace

const Target fuzz_metrics = {.name = "metrics",
                             .refusals = {},
                             .run = Run,
                             .seeds = Seeds,
                             .tokens = {"\t", "\n", " ", "1e308", "-", "_", ".", "the", "\xc4\xb0",
                                        "\xe2\x80\x99", "\xf0\x9f\x98\x80", "\xff"},
                             .mutations = 2000,
                             .longest = 4096};

}  // namespace syntra
