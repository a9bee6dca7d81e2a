// SPDX-License-Identifier: Apache-2.0
#include "metrics/bleu_score.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "metrics/ngrams.h"

namespace syntra {
namespace {

constexpr size_t kOrders = 4;

// Sums over a corpus.
struct Counts {
  std::array<int64_t, kOrders> right{}, found{};  // n-grams of 1 to 4 words
  int64_t length = 0, accepted_length = 0;        // in words
};

void Add(const std::vector<std::string>& predicted,
         const std::vector<std::vector<std::string>>& accepted, Counts* counts) {
  for (size_t n = 1; n <= kOrders; ++n) {
    NGrams most;
    for (const std::vector<std::string>& words : accepted) {
      for (const auto& [ngram, count] : CountNGrams(words, n)) {
        most[ngram] = std::max(most[ngram], count);
      }
    }
    const NGrams found = CountNGrams(predicted, n);
    counts->right[n - 1] += CommonNGrams(found, most);
    counts->found[n - 1] += TotalNGrams(found);
  }
  counts->length += std::ssize(predicted);
  // The shorter of two that are as near.
  const auto nearest = std::ranges::min_element(accepted, {}, [&](const auto& words) {
    return std::pair(std::abs(std::ssize(words) - std::ssize(predicted)), words.size());
  });
  counts->accepted_length += std::ssize(*nearest);
}

double BleuOf(const Counts& counts) {
  if (counts.right[0] == 0 || counts.found.back() == 0) return 0;
  double log_sum = 0, smoothing = 1;
  for (size_t i = 0; i < kOrders; ++i) {
    double right = static_cast<double>(counts.right[i]);
    if (right == 0) right = 1 / (smoothing *= 2);
    log_sum += std::log(right / static_cast<double>(counts.found[i]));
  }
  const double ratio =
      static_cast<double>(counts.accepted_length) / static_cast<double>(counts.length);
  return 100 * std::exp(log_sum / kOrders + std::min(0.0, 1 - ratio));
}

}  // namespace

double CorpusBleu(std::span<const Judgement> examples, WordsOfText* words_of) {
  Counts counts;
  for (const Judgement& one : examples) {
    std::vector<std::vector<std::string>> accepted;
    for (const std::string& text : one.accepted_texts) accepted.push_back(words_of(text));
    Add(words_of(one.predicted_text), accepted, &counts);
  }
  return BleuOf(counts);
}

}  // namespace syntra
