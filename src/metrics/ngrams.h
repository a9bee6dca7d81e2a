// SPDX-License-Identifier: Apache-2.0
// Runs of n words, or of n characters, which BLEU, ROUGE and chrF count.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>

namespace syntra {

// How often each run of `n` words occurs. No word holds a space.
using NGrams = std::map<std::string, int64_t>;
NGrams CountNGrams(std::span<const std::string> words, size_t n);

// How many runs there are.
int64_t TotalNGrams(const NGrams& ngrams);
// How many runs both have: each as often as in the one that has fewer of it.
int64_t CommonNGrams(const NGrams& a, const NGrams& b);

}  // namespace syntra
