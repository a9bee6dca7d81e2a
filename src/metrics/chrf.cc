// SPDX-License-Identifier: Apache-2.0
// chrF2 (Popović 2015) as sacrebleu computes it: the F score of the mean precision and the mean
// recall of n-grams of 1 to 6 characters, without white space. Recall counts twice as much.
#include <array>
#include <optional>

#include "metrics/metric.h"
#include "metrics/ngrams.h"
#include "metrics/unicode_text.h"

namespace syntra {
namespace {

constexpr size_t kLongest = 6;  // characters

// How many n-grams of one length two texts have.
struct NGramCounts {
  int64_t predicted = 0, accepted = 0, both = 0;
};
using CountsByLength = std::array<NGramCounts, kLongest>;
using NGramsByLength = std::array<NGrams, kLongest>;

NGramsByLength NGramsOf(std::string_view text) {
  std::vector<std::string> characters;
  for (const std::string_view word : SplitAtSpace(text)) {
    for (const Character& one : Characters(word)) characters.emplace_back(one.bytes);
  }
  NGramsByLength ngrams;
  for (size_t n = 1; n <= kLongest; ++n) ngrams[n - 1] = CountNGrams(characters, n);
  return ngrams;
}

// Where the accepted text is too short for an n-gram, those of the predicted text do not count.
CountsByLength Compare(const NGramsByLength& predicted, const NGramsByLength& accepted) {
  CountsByLength counts;
  for (size_t i = 0; i < kLongest; ++i) {
    counts[i] = {.predicted = accepted[i].empty() ? 0 : TotalNGrams(predicted[i]),
                 .accepted = TotalNGrams(accepted[i]),
                 .both = CommonNGrams(predicted[i], accepted[i])};
  }
  return counts;
}

// The F score, in percent, of the mean precision and recall over the lengths of which both texts
// have n-grams.
double ScoreOf(const CountsByLength& counts) {
  constexpr double kRecallWeight = 2 * 2;  // beta squared
  double precision = 0, recall = 0;
  int lengths = 0;
  for (const NGramCounts& one : counts) {
    if (one.predicted == 0 || one.accepted == 0) continue;
    precision += static_cast<double>(one.both) / static_cast<double>(one.predicted);
    recall += static_cast<double>(one.both) / static_cast<double>(one.accepted);
    ++lengths;
  }
  if (precision + recall == 0) return 0;
  precision /= lengths;
  recall /= lengths;
  return 100 * (1 + kRecallWeight) * precision * recall / (kRecallWeight * precision + recall);
}

// The counts of the accepted text with the highest score; of equals, the first.
CountsByLength BestOf(const Judgement& example) {
  const NGramsByLength predicted = NGramsOf(example.predicted_text);
  std::optional<CountsByLength> best;
  for (const std::string& text : example.accepted_texts) {
    const CountsByLength counts = Compare(predicted, NGramsOf(text));
    if (!best || ScoreOf(counts) > ScoreOf(*best)) best = counts;
  }
  return best.value();
}

std::vector<double> Chrf(std::span<const Judgement> examples, int) {
  CountsByLength sums;
  for (const Judgement& example : examples) {
    const CountsByLength counts = BestOf(example);
    for (size_t i = 0; i < kLongest; ++i) {
      sums[i].predicted += counts[i].predicted;
      sums[i].accepted += counts[i].accepted;
      sums[i].both += counts[i].both;
    }
  }
  return {ScoreOf(sums)};
}

}  // namespace

Metric metric_chrf() {
  return {.reads = Metric::Reads::kTexts, .values = {"chrf"}, .compute = Chrf};
}

}  // namespace syntra
