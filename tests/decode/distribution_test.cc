// SPDX-License-Identifier: Apache-2.0
// Top tokens, filters and draws against plain definitions.
#include "decode/distribution.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "base/error.h"
#include "core/random.h"

namespace syntra {
namespace {

std::vector<float> SomeLogits(int64_t count, uint32_t seed) {
  std::vector<float> logits;
  for (int64_t i = 0; i < count; ++i) logits.push_back(8 * UniformFloat(RandomAt({seed, 1}, i)[0]));
  return logits;
}

SampleDecoding Sampling(double temperature, int top_k, double top_p) {
  SampleDecoding sampling;
  sampling.set_temperature(temperature);
  sampling.set_top_k(top_k);
  sampling.set_top_p(top_p);
  return sampling;
}

// The definition, by sorting everything.
std::map<int32_t, double> PlainDistribution(const std::vector<float>& logits,
                                            const SampleDecoding& sampling) {
  std::vector<std::pair<double, int32_t>> tokens;
  for (size_t id = 0; id < logits.size(); ++id) {
    tokens.emplace_back(-std::exp(logits[id] / sampling.temperature()), id);
  }
  std::ranges::sort(tokens);
  const auto normalise = [&] {
    double sum = 0;
    for (const auto& token : tokens) sum -= token.first;
    for (auto& token : tokens) token.first /= sum;
  };
  if (sampling.top_k() > 0) tokens.resize(std::min<size_t>(sampling.top_k(), tokens.size()));
  normalise();
  double before = 0;
  std::erase_if(tokens, [&](const auto& token) {
    const bool reached = before >= sampling.top_p();
    before -= token.first;
    return reached;
  });
  normalise();
  std::map<int32_t, double> distribution;
  for (const auto& [probability, id] : tokens) distribution[id] = -probability;
  return distribution;
}

TEST(Distribution, LogSumExp) {
  EXPECT_NEAR(LogSumExp(std::vector<float>{0, 0, 0, 0}), std::log(4.0), 1e-6);
  EXPECT_NEAR(LogSumExp(std::vector<float>{1000, 1000}), 1000 + std::log(2.0), 1e-6);
  EXPECT_NEAR(LogSumExp(std::vector<float>{-1000, -2000}), -1000, 1e-6);
}

TEST(Distribution, TopTokensAreSortedAndTheLowerIdWinsAmongEquals) {
  const std::vector<float> logits{1, 5, 3, 5, 3, 0};
  EXPECT_EQ(TopTokens(logits, 1), (std::vector<int32_t>{1}));
  EXPECT_EQ(TopTokens(logits, 3), (std::vector<int32_t>{1, 3, 2}));
  EXPECT_EQ(TopTokens(logits, 100), (std::vector<int32_t>{1, 3, 2, 4, 0, 5}));
  std::vector<float> many = SomeLogits(1000, 7);
  for (float& logit : many) logit = std::round(8 * logit);  // many are equal
  std::vector<int32_t> order(1000);
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, [&](int32_t a, int32_t b) { return many[a] > many[b]; });
  for (const int64_t count : {1, 5, 15, 16, 17, 200, 1000}) {
    EXPECT_EQ(TopTokens(many, count), std::vector(order.begin(), order.begin() + count));
  }
}

TEST(Distribution, FiltersLeaveWhatTheirDefinitionsLeave) {
  for (const double temperature : {0.3, 1.0, 2.5}) {
    for (const int top_k : {0, 1, 5, 400}) {
      for (const double top_p : {0.05, 0.5, 0.9, 1.0}) {
        const std::vector<float> logits = SomeLogits(200, 3);
        const SampleDecoding sampling = Sampling(temperature, top_k, top_p);
        const auto expected = PlainDistribution(logits, sampling);
        const auto tokens = DrawableTokens(logits, sampling);
        ASSERT_EQ(tokens.size(), expected.size()) << sampling.ShortDebugString();
        for (const WeighedToken& token : tokens) {
          ASSERT_TRUE(expected.contains(token.id));
          EXPECT_NEAR(token.probability, expected.at(token.id), 1e-9);
        }
      }
    }
  }
}

TEST(Distribution, LogitsThatAreNotFiniteAreAnError) {
  for (const float bad : {NAN, INFINITY}) {
    EXPECT_THROW(LogSumExp(std::vector<float>{1, bad, 2}), Error);
  }
  EXPECT_EQ(LogSumExp(std::vector<float>{1, -INFINITY}), 1);
}

// Chi-square over 40000 draws from nine tokens: 8 degrees of freedom, 26.1 is the 99.9 % quantile.
TEST(Distribution, DrawsHaveTheirFrequencies) {
  constexpr int kDraws = 40000;
  const auto tokens = DrawableTokens(SomeLogits(30, 11), Sampling(1.5, 9, 1));
  std::map<int32_t, int> counts;
  for (int i = 0; i < kDraws; ++i)
    ++counts[DrawToken(tokens, UniformFloat(RandomAt({4, 2}, i)[0]))];
  double chi_square = 0;
  for (const WeighedToken& token : tokens) {
    const double expected = token.probability * kDraws;
    chi_square += std::pow(counts[token.id] - expected, 2) / expected;
  }
  EXPECT_LT(chi_square, 26.1);
  EXPECT_EQ(counts.size(), 9u);
}

TEST(Distribution, TheEndsOfTheUnitIntervalDrawTokens) {
  const std::vector<WeighedToken> tokens{{5, 0.3}, {6, 0.7 - 1e-12}, {7, 0.0}};
  EXPECT_EQ(DrawToken(tokens, 0), 5);
  EXPECT_EQ(DrawToken(tokens, 0.3), 6);
  EXPECT_EQ(DrawToken(tokens, 1), 6);
}

}  // namespace
}  // namespace syntra
