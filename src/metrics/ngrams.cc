// SPDX-License-Identifier: Apache-2.0
#include "metrics/ngrams.h"

#include <algorithm>

#include "base/text.h"

namespace syntra {

NGrams CountNGrams(std::span<const std::string> words, size_t n) {
  NGrams counts;
  for (size_t i = 0; i + n <= words.size(); ++i) ++counts[Join(words.subspan(i, n), " ")];
  return counts;
}

int64_t TotalNGrams(const NGrams& ngrams) {
  int64_t total = 0;
  for (const auto& [ngram, count] : ngrams) total += count;
  return total;
}

int64_t CommonNGrams(const NGrams& a, const NGrams& b) {
  int64_t common = 0;
  for (const auto& [ngram, count] : a) {
    const auto other = b.find(ngram);
    if (other != b.end()) common += std::min(count, other->second);
  }
  return common;
}

}  // namespace syntra
