// SPDX-License-Identifier: Apache-2.0
#include "decode/distribution.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

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

namespace {

// TopTokens passes over blocks of so many logits in which none is large enough.
constexpr int32_t kBlock = 64;

// Without branches, so that the compiler compares several at a time.
bool AnyIsAbove(std::span<const float> logits, float bound) {
  bool any = false;
  for (const float logit : logits) any |= logit > bound;
  return any;
}

}  // namespace

std::vector<int32_t> TopTokens(std::span<const float> logits, int64_t count) {
  const auto better = [logits](int32_t a, int32_t b) {
    return logits[a] != logits[b] ? logits[a] > logits[b] : a < b;
  };
  // A heap of the best so far with the worst of them on top.
  std::vector<int32_t> top(std::min<size_t>(count, logits.size()));
  std::iota(top.begin(), top.end(), 0);
  std::ranges::make_heap(top, better);
  const auto vocabulary = static_cast<int32_t>(logits.size());
  for (auto first = static_cast<int32_t>(top.size()); first < vocabulary; first += kBlock) {
    const int32_t end = std::min(first + kBlock, vocabulary);
    if (!AnyIsAbove(logits.subspan(first, end - first), logits[top.front()])) continue;
    for (int32_t id = first; id < end; ++id) {
      if (!better(id, top.front())) continue;
      std::ranges::pop_heap(top, better);
      top.back() = id;
      std::ranges::push_heap(top, better);
    }
  }
  std::ranges::sort_heap(top, better);
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
