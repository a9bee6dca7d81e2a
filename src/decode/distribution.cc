// SPDX-License-Identifier: Apache-2.0
#include "decode/distribution.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/divide.h"
#include "kernels/cpu/exponentials.h"

namespace syntra {

NotFiniteOutput::NotFiniteOutput(double log_probability)
    : Error(
          ExitCode::kCheckpoint,
          fmt::format("the model gives tokens a log-probability of {}; its parameters are damaged "
                      "or too large",
                      log_probability)) {}

double Finite(double log_probability) {
  if (!std::isfinite(log_probability)) throw NotFiniteOutput(log_probability);
  return log_probability;
}

double LogSumExp(std::span<const float> logits) {
  const auto [largest, sum] = SumExponentials(logits.data(), std::ssize(logits));
  return Finite(largest + std::log(double{sum}));
}

std::vector<int32_t> TopTokens(std::span<const float> logits, int64_t count) {
  const auto better = [logits](int32_t a, int32_t b) {
    return logits[a] != logits[b] ? logits[a] > logits[b] : a < b;
  };
  const int64_t vocabulary = std::ssize(logits);
  std::vector<float> largest(DivideUp(vocabulary, kMaximumBlock));
  LargestOfBlocks(logits.data(), vocabulary, largest.data());
  // At least `count` tokens reach the block maximum that so many blocks reach.
  float bound = -std::numeric_limits<float>::infinity();
  if (count < std::ssize(largest)) {
    std::vector<float> descending = largest;
    const auto last = descending.begin() + (count - 1);
    std::ranges::nth_element(descending, last, std::greater<>());
    bound = *last;
  }
  std::vector<int32_t> top;
  for (int64_t block = 0; block < std::ssize(largest); ++block) {
    if (largest[block] < bound) continue;
    const int64_t first = block * kMaximumBlock;
    for (int64_t id = first; id < std::min(first + kMaximumBlock, vocabulary); ++id) {
      if (logits[id] >= bound) top.push_back(static_cast<int32_t>(id));
    }
  }
  const auto end = top.begin() + std::min(count, std::ssize(top));
  std::ranges::partial_sort(top, end, better);
  top.erase(end, top.end());
  return top;
}

std::vector<WeighedToken> DrawableTokens(std::span<const float> logits,
                                         const SampleDecoding& sampling) {
  const auto vocabulary = static_cast<int64_t>(logits.size());
  const bool all = sampling.top_k() == 0 && sampling.top_p() >= 1;
  std::vector<int32_t> ids(vocabulary);
  if (all) {
    std::iota(ids.begin(), ids.end(), 0);  // without sorting
  } else {
    ids = TopTokens(logits, sampling.top_k() > 0 ? sampling.top_k() : vocabulary);
  }
  const float largest = *std::ranges::max_element(logits);
  std::vector<WeighedToken> tokens;
  double total = 0;
  for (const int32_t id : ids) {
    tokens.push_back({id, std::exp((logits[id] - largest) / sampling.temperature())});
    total += tokens.back().probability;
  }
  if (sampling.top_p() < 1) {
    double kept = 0;
    size_t count = 0;
    while (count < tokens.size() && kept < sampling.top_p() * total) {
      kept += tokens[count++].probability;
    }
    tokens.resize(count);
    total = kept;
  }
  for (WeighedToken& token : tokens) token.probability /= total;
  return tokens;
}

int32_t DrawToken(std::span<const WeighedToken> tokens, double uniform) {
  double end = 0;
  for (const WeighedToken& token : tokens) {
    end += token.probability;
    if (uniform < end) return token.id;
  }
  // Rounding left the shares short of 1.
  const auto last = std::ranges::find_if(tokens.rbegin(), tokens.rend(),
                                         [](const auto& token) { return token.probability > 0; });
  return last->id;
}

}  // namespace syntra
