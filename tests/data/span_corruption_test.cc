// SPDX-License-Identifier: Apache-2.0
#include "data/span_corruption.h"

#include <gtest/gtest.h>

#include <map>
#include <numeric>

namespace syntra {
namespace {

using Ids = std::vector<int32_t>;
using Mask = std::vector<uint8_t>;

Ids Replace(const Ids& tokens, const Mask& mask, bool masked, int32_t first_sentinel) {
  Ids out(tokens.size());
  out.resize(ReplaceSpansBySentinels(tokens, mask, masked, first_sentinel, out));
  return out;
}

TEST(SpanCorruption, LengthsOfT5) {
  struct Case {
    int64_t input_length;
    double density, mean_span;
    int64_t tokens, targets, noise, spans;
  };
  for (const Case& c :
       {Case{512, 0.15, 3, 568, 114, 85, 28}, Case{64, 0.15, 3, 70, 14, 10, 3},
        Case{128, 0.15, 3, 141, 29, 21, 7}, Case{256, 0.15, 3, 284, 58, 43, 14},
        Case{1024, 0.15, 3, 1137, 229, 171, 57}, Case{64, 0.2, 2, 70, 22, 14, 7},
        Case{64, 0.2, 1, 63, 27, 13, 13}, Case{64, 0.5, 3, 94, 64, 47, 16},
        Case{128, 0.5, 3, 190, 128, 95, 32}, Case{256, 0.5, 3, 382, 256, 191, 64},
        Case{512, 0.5, 3, 766, 512, 383, 128}, Case{1024, 0.5, 3, 1534, 1024, 767, 256}}) {
    const CorruptionLengths lengths = LengthsFor(c.input_length, c.density, c.mean_span);
    EXPECT_EQ(lengths.tokens, c.tokens) << c.input_length;
    EXPECT_EQ(lengths.inputs, c.input_length);
    EXPECT_EQ(lengths.targets, c.targets);
    EXPECT_EQ(lengths.noise, c.noise);
    EXPECT_EQ(lengths.spans, c.spans);
  }
}

// Shorter segments must fit where the longest does, whatever the setting.
TEST(SpanCorruption, ShorterSegmentsFitToo) {
  for (const double density : {0.05, 0.15, 0.3, 0.5, 0.9}) {
    for (const double mean_span : {1.0, 2.0, 3.0, 10.0}) {
      for (const int64_t input_length : {8, 64, 100, 512}) {
        const CorruptionLengths longest = LengthsFor(input_length, density, mean_span);
        EXPECT_LE(longest.inputs, input_length);
        for (int64_t n = 1; n <= longest.tokens; ++n) {
          const CorruptionLengths lengths = LengthsOfSegment(n, density, mean_span);
          EXPECT_LE(lengths.inputs, longest.inputs) << density << " " << mean_span << " " << n;
          EXPECT_LE(lengths.targets, longest.targets) << density << " " << mean_span << " " << n;
        }
      }
    }
  }
}

TEST(SpanCorruption, RoundsHalvesToEven) {
  EXPECT_EQ(LengthsOfSegment(10, 0.15, 3).noise, 2);  // 1.5
  EXPECT_EQ(LengthsOfSegment(30, 0.15, 3).noise, 4);  // 4.5
  EXPECT_EQ(LengthsOfSegment(50, 0.15, 3).noise, 8);  // 7.5
  EXPECT_EQ(LengthsOfSegment(10, 0.25, 1).noise, 2);  // 2.5
  EXPECT_EQ(LengthsOfSegment(20, 0.25, 2).spans, 2);  // noise 5, 2.5
  EXPECT_EQ(LengthsOfSegment(28, 0.25, 2).spans, 4);  // noise 7, 3.5
}

TEST(SpanCorruption, TinySegments) {
  for (int64_t n = 1; n <= 4; ++n) {
    SpanCorruption corruption(0.15, 3);
    const auto mask = corruption.RandomMask(n, {1, 2});
    const Mask expected[] = {{0}, {0, 1}, {0, 0, 1}, {0, 0, 0, 1}};
    EXPECT_EQ(Mask(mask.begin(), mask.end()), expected[n - 1]);
  }
}

TEST(SpanCorruption, MasksHaveTheRightCounts) {
  SpanCorruption corruption(0.15, 3);
  for (const int64_t length : {2, 3, 7, 20, 141, 567, 568, 1137, 20000}) {
    for (uint32_t draw = 0; draw < 50; ++draw) {
      const auto mask = corruption.RandomMask(length, {draw, 9});
      const CorruptionLengths lengths = LengthsOfSegment(length, 0.15, 3);
      int64_t noise = 0, spans = 0;
      for (int64_t i = 0; i < length; ++i) {
        noise += mask[i];
        spans += mask[i] && !mask[i - 1];
      }
      EXPECT_EQ(noise, lengths.noise);
      EXPECT_EQ(spans, lengths.spans);
      EXPECT_FALSE(mask[0]);
      EXPECT_TRUE(mask[length - 1]);
    }
  }
}

// T5's own test: 8 of 32 tokens in 4 spans; the first token is never noise, the last always.
TEST(SpanCorruption, MaskOfT5sTest) {
  SpanCorruption corruption(0.25, 2);
  const auto mask = corruption.RandomMask(32, {3, 4});
  EXPECT_EQ(std::accumulate(mask.begin(), mask.end(), 0), 8);
  EXPECT_EQ(LengthsOfSegment(32, 0.25, 2).spans, 4);
  SpanCorruption none(0, 2);
  const auto empty = none.RandomMask(32, {3, 4});
  EXPECT_EQ(std::accumulate(empty.begin(), empty.end(), 0), 0);
}

// 7 tokens at density 0.43: 3 noise in 2 spans (2 ways) and 4 others in 2 spans (3 ways).
TEST(SpanCorruption, AllCompositionsAreEquallyLikely) {
  SpanCorruption corruption(0.43, 1.5);
  std::map<Mask, int> counts;
  const int draws = 60000;
  for (int draw = 0; draw < draws; ++draw) {
    const auto mask = corruption.RandomMask(7, {static_cast<uint32_t>(draw), 5});
    ++counts[Mask(mask.begin(), mask.end())];
  }
  EXPECT_EQ(counts.size(), 6u);
  double chi_square = 0;
  for (const auto& [mask, count] : counts) {
    const double expected = draws / 6.0;
    chi_square += (count - expected) * (count - expected) / expected;
  }
  EXPECT_LT(chi_square, 20.5);  // 5 degrees of freedom, p = 0.001
}

TEST(SpanCorruption, ReplacesSpansAsT5sTests) {
  const Ids tokens = {10, 11, 12, 13, 14, 15};
  const Mask mask = {1, 1, 0, 0, 1, 0};
  EXPECT_EQ(Replace(tokens, mask, true, 999), (Ids{999, 12, 13, 998, 15}));
  EXPECT_EQ(Replace(tokens, mask, false, 999), (Ids{10, 11, 999, 14, 998}));
}

TEST(SpanCorruption, DenoisesAsT5sTest) {
  const Ids tokens = {3, 2, 20, 4, 3, 2, 8, 13, 2, 3, 2, 23, 7, 19, 22, 3, 2, 7, 2};
  const Mask mask = {0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1};
  EXPECT_EQ(Replace(tokens, mask, true, 25),
            (Ids{3, 2, 20, 4, 3, 2, 8, 13, 25, 3, 2, 23, 7, 19, 24}));
  EXPECT_EQ(Replace(tokens, mask, false, 25), (Ids{25, 2, 24, 22, 3, 2, 7, 2}));
}

// Putting each target span back where its sentinel stands in the inputs gives the segment again.
TEST(SpanCorruption, InputsAndTargetsHoldTheSegment) {
  constexpr int32_t kFirstSentinel = 32099, kEos = 1;
  for (const double density : {0.15, 0.5}) {
    SpanCorruption corruption(density, 3);
    for (uint32_t draw = 0; draw < 300; ++draw) {
      const int64_t length = 1 + draw * 2;
      Ids tokens(length);
      std::iota(tokens.begin(), tokens.end(), 100);
      const auto mask = corruption.RandomMask(length, {draw, 1});
      Ids inputs(length + 1), targets(length + 1);
      inputs.resize(WriteCorruptedInputs(tokens, mask, kFirstSentinel, kEos, inputs));
      targets.resize(WriteCorruptedTargets(tokens, mask, kFirstSentinel, kEos, targets));
      const CorruptionLengths lengths = LengthsOfSegment(length, density, 3);
      EXPECT_EQ(static_cast<int64_t>(inputs.size()), lengths.inputs);
      EXPECT_EQ(static_cast<int64_t>(targets.size()), lengths.targets);
      EXPECT_EQ(inputs.back(), kEos);
      EXPECT_EQ(targets.back(), kEos);
      std::map<int32_t, Ids> spans;
      int32_t sentinel = 0;
      for (size_t i = 0; i + 1 < targets.size(); ++i) {
        if (targets[i] > 20000) {
          sentinel = targets[i];
        } else {
          spans[sentinel].push_back(targets[i]);
        }
      }
      Ids restored;
      for (size_t i = 0; i + 1 < inputs.size(); ++i) {
        if (inputs[i] > 20000) {
          restored.insert(restored.end(), spans[inputs[i]].begin(), spans[inputs[i]].end());
        } else {
          restored.push_back(inputs[i]);
        }
      }
      EXPECT_EQ(restored, tokens);
    }
  }
}

TEST(SpanCorruption, MasksAreAFunctionOfTheKey) {
  SpanCorruption first(0.15, 3), second(0.15, 3);
  const auto a = first.RandomMask(568, {7, 8});
  const auto b = second.RandomMask(568, {7, 8});
  EXPECT_TRUE(std::equal(a.begin(), a.end(), b.begin()));
  const auto c = second.RandomMask(568, {7, 9});
  EXPECT_FALSE(std::equal(a.begin(), a.end(), c.begin()));
}

}  // namespace
}  // namespace syntra
