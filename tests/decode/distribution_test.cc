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

// How long the share is in which `place` lies. Its ends are found by halving.
double ShareAt(double place, const std::vector<float>& logits, const SampleDecoding& sampling) {
  const int32_t id = DrawToken(logits, sampling, place);
  const auto end_towards = [&](double outside) {
    double inside = place;
    if (DrawToken(logits, sampling, outside) == id) return outside;
    for (int halving = 0; halving < 50; ++halving) {
      const double middle = std::midpoint(inside, outside);
      (DrawToken(logits, sampling, middle) == id ? inside : outside) = middle;
    }
    return outside;
  };
  return end_towards(1) - end_towards(0);
}

// Every token is drawn in the middle of its share of [0, 1]; of some, shares are measured.
void ExpectShares(const std::vector<float>& logits, const SampleDecoding& sampling,
                  double relative_tolerance, double absolute_tolerance) {
  const auto distribution = PlainDistribution(logits, sampling);
  std::vector<std::pair<int32_t, double>> expected(distribution.begin(), distribution.end());
  if (sampling.top_k() > 0) {
    std::ranges::stable_sort(expected, std::greater<>(), [&](auto& e) { return logits[e.first]; });
  }
  const size_t stride = expected.size() / 7 + 1;
  double begin = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    const auto [id, probability] = expected[i];
    const double middle = begin + probability / 2;
    ASSERT_EQ(DrawToken(logits, sampling, middle), id) << sampling.ShortDebugString();
    if (i % stride == 0) {
      EXPECT_NEAR(ShareAt(middle, logits, sampling), probability,
                  relative_tolerance * probability + absolute_tolerance);
    }
    begin += probability;
  }
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
        ExpectShares(SomeLogits(200, 3), Sampling(temperature, top_k, top_p), 0, 1e-9);
      }
    }
  }
}

TEST(Distribution, SharesAreExactInLargeVocabularies) {
  for (const auto& [top_k, top_p] : {std::pair{0, 1.0}, {0, 0.9}, {600, 1.0}, {600, 0.9}}) {
    ExpectShares(SomeLogits(2000, 5), Sampling(1.3, top_k, top_p), 1e-6, 0);
  }
}

TEST(Distribution, EqualsOfTheLastTokenOfANucleusAreInIt) {
  const std::vector<float> logits{1, 3, 1, 2, 2, 2};  // exp(3) is less than 0.6 of all
  const double least = 1 / (3 + std::exp(1.0));
  for (const int32_t id : {3, 4, 5}) {
    const double place = 1 - (5.5 - id) * least;
    EXPECT_EQ(DrawToken(logits, Sampling(1, 0, 0.6), place), id);
    EXPECT_NEAR(ShareAt(place, logits, Sampling(1, 0, 0.6)), least, 1e-9);
  }
}

TEST(Distribution, WhatIsSlightlyLessProbableIsNotInTheNucleus) {
  ExpectShares({1, 3, 1.99999F, 2, 1}, Sampling(1, 0, 0.6), 0, 1e-9);
}

TEST(Distribution, AnyTemperatureCanBeDrawnWith) {
  const std::vector<float> logits = SomeLogits(1000, 2);
  const auto largest = static_cast<int32_t>(std::ranges::max_element(logits) - logits.begin());
  for (const double top_p : {0.5, 1.0}) {
    for (const double uniform : {0.0, 0.5, 1.0}) {
      EXPECT_EQ(DrawToken(logits, Sampling(1e-300, 0, top_p), uniform), largest);
    }
    EXPECT_NEAR(DrawToken(logits, Sampling(1e6, 0, 1), top_p), 1000 * top_p, 1);
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
  const std::vector<float> logits = SomeLogits(30, 11);
  const SampleDecoding sampling = Sampling(1.5, 9, 1);
  std::map<int32_t, int> counts;
  for (int i = 0; i < kDraws; ++i) {
    ++counts[DrawToken(logits, sampling, UniformFloat(RandomAt({4, 2}, i)[0]))];
  }
  double chi_square = 0;
  for (const auto& [id, probability] : PlainDistribution(logits, sampling)) {
    const double expected = probability * kDraws;
    chi_square += std::pow(counts[id] - expected, 2) / expected;
  }
  EXPECT_LT(chi_square, 26.1);
  EXPECT_EQ(counts.size(), 9u);
}

TEST(Distribution, TheEndsOfTheUnitIntervalDrawTokens) {
  std::vector<float> logits{-1000, 1, 2, -1000};
  logits.resize(1000, -1000);
  for (const double top_p : {0.99, 1.0}) {
    EXPECT_EQ(DrawToken(logits, Sampling(1, 0, top_p), 0), 1);
    EXPECT_EQ(DrawToken(logits, Sampling(1, 0, top_p), 1), 2);
  }
  EXPECT_EQ(DrawToken(logits, Sampling(1, 10, 1), 0), 2);
  EXPECT_EQ(DrawToken(logits, Sampling(1, 10, 1), 1), 1);
}

}  // namespace
}  // namespace syntra
