// SPDX-License-Identifier: Apache-2.0
// ROUGE-1, ROUGE-2 and ROUGE-Lsum (Lin 2004) as the package rouge_score computes them, without
// stemming: the mean over examples of F1, of the accepted text that is nearest. T5 prints the
// median over random samples of the examples instead of the mean, so its value changes each time.
#include <algorithm>
#include <array>

#include "base/text.h"
#include "metrics/f1_score.h"
#include "metrics/ngrams.h"
#include "metrics/unicode_text.h"

namespace syntra {
namespace {

using Words = std::vector<std::string>;

bool IsPartOfWord(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }

// Runs of ASCII letters and digits, in lower case; everything else parts them.
Words RougeWords(std::string_view text) {
  std::string lower = LowerCase(text);
  std::ranges::replace_if(
      lower, [](char c) { return !IsPartOfWord(c); }, ' ');
  const std::vector<std::string_view> words = SplitAtSpace(lower);
  return {words.begin(), words.end()};
}

// Parted at line ends, and where T5 sees the end of a sentence: at " . ".
std::vector<Words> SentencesOf(const std::string& text) {
  std::vector<Words> sentences;
  for (const std::string& sentence : Split(Replaced(text, " . ", " .\n"), '\n')) {
    sentences.push_back(RougeWords(sentence));
  }
  return sentences;
}

// A text, read once.
struct Text {
  explicit Text(const std::string& text)
      : words(RougeWords(text)),
        ngrams{CountNGrams(words, 1), CountNGrams(words, 2)},
        sentences(SentencesOf(text)) {}

  Words words;
  std::array<NGrams, 2> ngrams;  // of 1 and 2 words
  std::vector<Words> sentences;
};

double NGramF1(const Text& predicted, const Text& accepted, size_t n) {
  const auto count = [n](const Text& text) {
    return static_cast<double>(TotalNGrams(text.ngrams[n - 1]));
  };
  const int64_t both = CommonNGrams(predicted.ngrams[n - 1], accepted.ngrams[n - 1]);
  return F1Score(static_cast<double>(both), count(predicted), count(accepted));
}

// Marks the words of `accepted` in one longest common subsequence with `predicted`: of several,
// the one that rouge_score takes.
void MarkCommon(const Words& accepted, const Words& predicted, std::vector<bool>* marks) {
  const size_t rows = accepted.size(), columns = predicted.size();
  std::vector<std::vector<int>> length(rows + 1, std::vector<int>(columns + 1));
  for (size_t i = 1; i <= rows; ++i) {
    for (size_t j = 1; j <= columns; ++j) {
      length[i][j] = accepted[i - 1] == predicted[j - 1]
                         ? length[i - 1][j - 1] + 1
                         : std::max(length[i - 1][j], length[i][j - 1]);
    }
  }
  for (size_t i = rows, j = columns; i > 0 && j > 0;) {
    if (accepted[i - 1] == predicted[j - 1]) {
      (*marks)[i - 1] = true;
      --i;
      --j;
    } else if (length[i][j - 1] > length[i - 1][j]) {
      --j;
    } else {
      --i;
    }
  }
}

// Lin 2004, section 3.2: for each accepted sentence, the words that it has in common with any
// predicted one, in order. A word counts no more often than either text has it.
double SummaryF1(const Text& predicted, const Text& accepted) {
  NGrams left = predicted.ngrams[0];
  double both = 0;
  for (const Words& sentence : accepted.sentences) {
    std::vector<bool> marks(sentence.size());
    for (const Words& other : predicted.sentences) MarkCommon(sentence, other, &marks);
    for (size_t i = 0; i < sentence.size(); ++i) {
      if (marks[i] && left[sentence[i]]-- > 0) ++both;
    }
  }
  return F1Score(both, static_cast<double>(predicted.words.size()),
                 static_cast<double>(accepted.words.size()));
}

std::vector<double> Rouge(std::span<const Judgement> examples, int) {
  std::vector<double> sums(3);
  for (const Judgement& one : examples) {
    const Text predicted(one.predicted_text);
    std::array<double, 3> best{};
    for (const std::string& text : one.accepted_texts) {
      const Text accepted(text);
      best[0] = std::max(best[0], NGramF1(predicted, accepted, 1));
      best[1] = std::max(best[1], NGramF1(predicted, accepted, 2));
      best[2] = std::max(best[2], SummaryF1(predicted, accepted));
    }
    for (size_t i = 0; i < sums.size(); ++i) sums[i] += best[i];
  }
  for (double& sum : sums) sum *= 100 / static_cast<double>(examples.size());
  return sums;
}

}  // namespace

Metric metric_rouge() {
  return {.reads = Metric::Reads::kTexts,
          .values = {"rouge1", "rouge2", "rougeLsum"},
          .compute = Rouge};
}

}  // namespace syntra
