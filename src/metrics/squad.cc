// SPDX-License-Identifier: Apache-2.0
// SQuAD's and ReCoRD's two numbers: F1 of the bags of words, and exact match, of a prediction and
// the accepted answer that is nearest, both normalised. Examples of one group are repetitions of
// one question, and the first counts (squad and deduplicate_metric in t5/evaluation/metrics.py).
#include <algorithm>
#include <set>

#include "metrics/f1_score.h"
#include "metrics/squad_text.h"
#include "metrics/unicode_text.h"

namespace syntra {
namespace {

std::multiset<std::string_view> AnswerWords(std::string_view text) {
  const std::vector<std::string_view> words = SplitAtSpace(text);
  return {words.begin(), words.end()};
}

double WordF1(std::string_view predicted, std::string_view accepted) {
  const std::multiset<std::string_view> found = AnswerWords(predicted),
                                        wanted = AnswerWords(accepted);
  std::vector<std::string_view> both;
  std::ranges::set_intersection(found, wanted, std::back_inserter(both));
  return F1Score(static_cast<double>(both.size()), static_cast<double>(found.size()),
                 static_cast<double>(wanted.size()));
}

std::vector<double> Squad(std::span<const Judgement> examples, int) {
  std::set<std::string> groups;
  double f1 = 0, exact = 0, count = 0;
  for (const Judgement& one : examples) {
    if (!one.group.empty() && !groups.insert(one.group).second) continue;
    const std::string predicted = NormalizeSquad(one.predicted_text);
    double best = 0;
    bool is_exact = false;
    for (const std::string& text : one.accepted_texts) {
      const std::string accepted = NormalizeSquad(text);
      best = std::max(best, WordF1(predicted, accepted));
      is_exact = is_exact || predicted == accepted;
    }
    f1 += best;
    exact += is_exact;
    ++count;
  }
  return {100 * f1 / count, 100 * exact / count};
}

}  // namespace

Metric metric_squad() {
  return {.reads = Metric::Reads::kTexts, .values = {"f1", "em"}, .compute = Squad};
}

}  // namespace syntra
