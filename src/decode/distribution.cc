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
namespace {

// A weight, and a place in its share.
struct Share {
  int64_t index;
  double place;  // in [0, 1]
};

// The weights divide [0, 1] among them. Returns the share in which `place` lies.
Share FindShare(std::span<const double> weights, double place) {
  double rest = place * Finite(std::accumulate(weights.begin(), weights.end(), 0.0));
  int64_t last = 0;
  for (int64_t i = 0; i < std::ssize(weights); ++i) {
    if (rest < weights[i]) return {i, rest / weights[i]};
    rest -= weights[i];
    if (weights[i] > 0) last = i;
  }
  return {last, 1};  // Rounding left the shares short of 1.
}

// Tokens to draw from. They weigh exp(logit / temperature), relative to the most probable.
class DrawableTokens {
 public:
  DrawableTokens(std::span<const float> logits, double temperature)
      : logits_(logits), temperature_(temperature) {
    std::vector<float> largest(DivideUp(std::ssize(logits), kMaximumBlock));
    LargestOfBlocks(logits.data(), std::ssize(logits), largest.data());
    largest_ = *std::ranges::max_element(largest);
  }

  // Keeps the fewest of the most probable that have this share of the weight, and their equals.
  void KeepNucleus(double share) {
    const double wanted = share * WeightOf(logits_);
    // SumExponentials takes what weighs less than exp(-86.6) for zero.
    auto low = static_cast<float>(largest_ - 87 * temperature_);
    float high = largest_;
    for (int halving = 0; halving < 27; ++halving) {  // to 1e-6 of the temperature
      bound_ = std::midpoint(low, high);
      (WeightOf(logits_) >= wanted ? low : high) = bound_;
    }
    bound_ = low;
  }

  // The token in whose share of [0, 1] `uniform` lies. First a block is drawn, then one of its
  // tokens, so that the exponentials of other blocks are only summed.
  int64_t Draw(double uniform) const {
    constexpr int64_t kBlock = 256;
    const auto block_at = [&](int64_t first) {
      return logits_.subspan(first, std::min(kBlock, std::ssize(logits_) - first));
    };
    std::vector<double> weights;
    for (int64_t first = 0; first < std::ssize(logits_); first += kBlock) {
      weights.push_back(WeightOf(block_at(first)));
    }
    const Share block = FindShare(weights, uniform);
    const int64_t first = block.index * kBlock;
    weights.clear();
    for (const float logit : block_at(first)) {
      weights.push_back(logit < bound_ ? 0 : WeightOf(logit));
    }
    return first + FindShare(weights, block.place).index;
  }

 private:
  double WeightOf(float logit) const { return std::exp((double{logit} - largest_) / temperature_); }

  // The sum over those that are kept, to a relative error of 1e-6. Not finite if a logit is not.
  double WeightOf(std::span<const float> logits) const {
    // The largest scale leaves only the largest logits: its product with their zeros is zero.
    const double scale = std::min<double>(1 / temperature_, std::numeric_limits<float>::max());
    const auto part =
        SumExponentials(logits.data(), std::ssize(logits), static_cast<float>(scale), bound_);
    return part.sum * WeightOf(part.largest);
  }

  std::span<const float> logits_;
  double temperature_;
  float largest_;
  float bound_ = -std::numeric_limits<float>::infinity();  // of the logits that are kept
};

int64_t DrawIndex(std::span<const float> logits, const SampleDecoding& sampling, double uniform) {
  DrawableTokens tokens(logits, sampling.temperature());
  if (sampling.top_p() < 1) tokens.KeepNucleus(sampling.top_p());
  return tokens.Draw(uniform);
}

}  // namespace

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

int32_t DrawToken(std::span<const float> logits, const SampleDecoding& sampling, double uniform) {
  if (sampling.top_k() == 0) return static_cast<int32_t>(DrawIndex(logits, sampling, uniform));
  const std::vector<int32_t> top = TopTokens(logits, sampling.top_k());
  std::vector<float> of_top(top.size());
  std::ranges::transform(top, of_top.begin(), [logits](int32_t id) { return logits[id]; });
  return top[DrawIndex(of_top, sampling, uniform)];
}

}  // namespace syntra
