// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <thread>
#include <vector>

#include "base/error.h"
#include "core/buffer.h"
#include "core/instruction_sets.h"
#include "core/orthogonal.h"
#include "core/parameters.h"
#include "core/random.h"
#include "core/random_fill.h"
#include "core/thread.h"
#include "tests/base/error_of.h"

namespace syntra {
namespace {

TEST(Random, PhiloxMatchesThePublishedVector) {
  // Known-answer test of Random123 (philox4x32-10, all ones).
  const RandomBits bits = RandomAt({~0u, ~0u}, ~0ull, ~0ull);
  EXPECT_EQ(bits[0], 0x408f276du);
  EXPECT_EQ(bits[1], 0x41c83b0eu);
  EXPECT_EQ(bits[2], 0xa20bc7c6u);
  EXPECT_EQ(bits[3], 0x6d5451fdu);
}

TEST(Random, KeysDependOnEveryArgument) {
  const RandomKey base = DeriveKey(1, "dropout", 2, 3);
  for (const RandomKey other : {DeriveKey(2, "dropout", 2, 3), DeriveKey(1, "order", 2, 3),
                                DeriveKey(1, "dropout", 3, 3), DeriveKey(1, "dropout", 2, 4)}) {
    EXPECT_TRUE(base.low != other.low || base.high != other.high);
  }
}

struct Moments {
  double mean, deviation, largest;
};
Moments MomentsOf(Initializer initializer) {
  std::vector<float> values(200003);
  Initialize({.name = "x", .shape = {200003}, .initializer = initializer}, 7, values);
  double sum = 0, squares = 0, largest = 0;
  for (const float v : values) {
    sum += v;
    squares += static_cast<double>(v) * v;
    largest = std::max<double>(largest, std::abs(v));
  }
  const double mean = sum / values.size();
  return {mean, std::sqrt(squares / values.size() - mean * mean), largest};
}

TEST(Parameters, InitializersHaveTheirMoments) {
  EXPECT_NEAR(MomentsOf(Initializer::Normal(0.5)).deviation, 0.5, 0.005);
  EXPECT_NEAR(MomentsOf(Initializer::Normal(0.5)).mean, 0, 0.005);
  const Moments truncated = MomentsOf(Initializer::TruncatedNormal(1));
  EXPECT_NEAR(truncated.deviation, 0.8796, 0.005);
  EXPECT_LE(truncated.largest, 2);
  const Moments uniform = MomentsOf(Initializer::Uniform(0.3));
  EXPECT_NEAR(uniform.deviation, 0.3 / std::sqrt(3.0), 0.003);
  EXPECT_LE(uniform.largest, 0.3);
}

// Quantiles of the standard normal, from its distribution function.
TEST(RandomFill, NormalHasItsQuantiles) {
  std::vector<float> values(400000);
  FillNormal({1, 2}, 1.0, 0, values);
  std::ranges::sort(values);
  for (const double quantile : {-3.0, -1.0, 0.0, 0.5, 2.0, 3.5}) {
    const double expected = 0.5 * std::erfc(-quantile / std::sqrt(2.0));
    const double below =
        std::ranges::lower_bound(values, static_cast<float>(quantile)) - values.begin();
    EXPECT_NEAR(below / values.size(), expected,
                5 * std::sqrt(expected * (1 - expected) / values.size()));
  }
  // The tails are there: the largest of 400,000 draws lies near 4.6.
  EXPECT_GT(values.back(), 4.0);
  EXPECT_LT(values.back(), 6.5);
}

TEST(RandomFill, UsesTheWordsOfPhilox) {
  std::vector<float> values(1003);
  FillUniform({7, 9}, 1.0, values);
  for (size_t i = 0; i < values.size(); ++i) {
    const uint32_t word = RandomAt({7, 9}, i / 4)[i % 4];
    const float u = (static_cast<float>(word >> 8) + 0.5f) * 0x1p-24f;
    ASSERT_EQ(values[i], 2.0f * u - 1.0f);
  }
}

// The probability that a standard normal draw lies beyond |x| on one side.
double TailOf(double x) { return 0.5 * std::erfc(std::abs(x) / std::sqrt(2.0)); }

// Two groups of columns, the second one cut short.
TEST(Orthogonal, ColumnsOfAGroupAreAtRightAnglesAndAsLongAsNormalOnes) {
  constexpr int64_t kRows = 24, kColumns = 40;
  std::vector<float> values(kRows * kColumns), normal(values.size());
  FillOrthogonal({3, 4}, kRows, values);
  FillNormal({3, 4}, 1.0, 0, normal);
  const auto dot = [&](const std::vector<float>& matrix, int64_t a, int64_t b) {
    double sum = 0;
    for (int64_t i = 0; i < kRows; ++i) {
      sum += double{matrix[i * kColumns + a]} * double{matrix[i * kColumns + b]};
    }
    return sum;
  };
  for (int64_t a = 0; a < kColumns; ++a) {
    EXPECT_NEAR(dot(values, a, a), dot(normal, a, a), 1e-4);
    for (int64_t b = 0; b < a; ++b) {
      if (a / kRows != b / kRows) continue;
      EXPECT_NEAR(dot(values, a, b), 0, 1e-4) << a << ' ' << b;
    }
  }
  EXPECT_GT(std::abs(dot(values, 0, kRows)), 1e-2);
}

TEST(RandomFill, NormalIsTheQuantileOfItsWord) {
  for (const double cut : {0.0, 2.0}) {
    std::vector<float> values(100003);
    FillNormal({7, 9}, 0.5, cut, values);
    const double lowest = cut > 0 ? TailOf(cut) : 0;
    for (size_t i = 0; i < values.size(); ++i) {
      const uint32_t word = RandomAt({7, 9}, i / 4)[i % 4];
      const double tail = lowest + ((word >> 1) + 0.5) * 0x1p-31 * (0.5 - lowest);
      ASSERT_EQ(values[i] > 0, (word & 1) != 0);
      ASSERT_NEAR(TailOf(values[i] / 0.5), tail, 1e-5 * tail + 1e-7) << word;
    }
  }
}

TEST(RandomFill, EveryInstructionSetGivesTheSameBits) {
  std::vector<std::vector<float>> drawn;
  OnEveryInstructionSet([&] {
    std::vector<float>& values = drawn.emplace_back(100003);
    FillNormal({7, 9}, 1.0, 0, values);
    EXPECT_EQ(values, drawn.front());
  });
}

TEST(Parameters, ValuesDoNotDependOnThreadCount) {
  const ParameterSpec spec{.name = "w", .shape = {100, 77}, .initializer = Initializer::Normal(1)};
  const int threads = ThreadCount();
  std::vector<float> one(7700), two(7700);
  SetThreadCount(1);
  Initialize(spec, 3, one);
  SetThreadCount(2);
  Initialize(spec, 3, two);
  SetThreadCount(threads);
  EXPECT_EQ(one, two);
}

TEST(Parameters, OffsetsAreAlignedAndDisjoint) {
  ParameterStore store;
  store.Declare({.name = "a", .shape = {3}});
  store.Declare({.name = "b", .shape = {5, 7}, .trainable = false});
  EXPECT_EQ(store.Get("b").offset, ParameterStore::kBlock);
  EXPECT_EQ(store.element_count(), 38);
  EXPECT_EQ(store.trainable_element_count(), 3);
  EXPECT_EQ(store.arena_elements(), 2 * ParameterStore::kBlock);
  EXPECT_THROW(store.Declare({.name = "a", .shape = {3}}), Error);
}

// Of an arena of a hundred blocks, of which the first parameter has nearly ten.
TEST(Parameters, BucketsShrinkTowardsTheFirstParameter) {
  constexpr int64_t kBlock = ParameterStore::kBlock;
  for (const int ranks : {1, 2, 3, 8}) {
    ParameterStore store;
    store.ShareEqually(ranks);
    store.Declare({.name = "first", .shape = {10 * kBlock - 3}});
    store.Declare({.name = "others", .shape = {90 * kBlock}});
    EXPECT_EQ(store.Buckets(0), (std::vector<ElementRange>{{0, store.arena_elements()}}));
    const int64_t largest = store.RoundUp(16 * kBlock, ranks);
    const std::vector<ElementRange> buckets = store.Buckets(16 * kBlock);
    int64_t end = store.arena_elements(), before = largest;
    for (const ElementRange& bucket : buckets) {
      EXPECT_EQ(bucket.end, end);
      EXPECT_EQ(bucket.size() % (ranks * kBlock), 0);
      EXPECT_TRUE(bucket.begin == 0 || bucket.size() <= before);
      before = bucket.size();
      end = bucket.begin;
    }
    EXPECT_EQ(end, 0);
    EXPECT_EQ(buckets.front().size(), largest);
    EXPECT_GE(buckets.back().size(), 10 * kBlock);
    EXPECT_LE(buckets.back().size(),
              store.RoundUp(10 * kBlock, ranks) + store.RoundUp(2 * kBlock, ranks));
  }
}

// As OMP_DYNAMIC=true and OMP_MAX_ACTIVE_LEVELS=0 would have it.
TEST(ThreadCount, IsThatOfEveryTeam) {
  const int saved = ThreadCount();
  omp_set_dynamic(1);
  omp_set_max_active_levels(0);
  SetThreadCount(3);
  std::atomic<int> team = 0;
#pragma omp parallel
  ++team;
  EXPECT_EQ(team, ThreadCount());
  SetThreadCount(saved);
}

TEST(ParallelFor, CoversEveryIndexOnce) {
  for (const int64_t count : {0, 1, 63, 64, 65, 1000}) {
    std::vector<int> seen(count);
    ParallelFor(count, 64, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) ++seen[i];
    });
    EXPECT_EQ(std::vector<int>(count, 1), seen);
  }
}

TEST(ParallelTasks, RunsEveryTaskOnceOnAnyTeam) {
  const int saved = ThreadCount();
  for (const int threads : {1, 2, 3, 200}) {
    SetThreadCount(threads);
    for (const int64_t count : {0, 1, 2, 7, 1000}) {
      std::vector<std::atomic<int>> seen(count);
      ParallelTasks(count, [&](int64_t i) { ++seen[i]; });
      for (const std::atomic<int>& times : seen) EXPECT_EQ(1, times);
    }
  }
  SetThreadCount(saved);
}

TEST(ParallelTasks, OthersTakeWhatASlowThreadHasLeft) {
  const int saved = ThreadCount();
  SetThreadCount(2);
  // Task 0 waits until all others are done: its thread's share must have been taken over.
  std::atomic<int> done = 0;
  ParallelTasks(8, [&](int64_t i) {
    while (i == 0 && done < 7) std::this_thread::yield();
    ++done;
  });
  EXPECT_EQ(8, done);
  SetThreadCount(saved);
}

// Whichever thread meets an error, it says what the waiting thread was doing.
TEST(ParallelTasks, ErrorsHaveTheContextsOfTheWaitingThread) {
  const int saved = ThreadCount();
  SetThreadCount(3);
  const ErrorContext context([] { return std::string("testing"); });
  std::atomic<int> started = 0;
  const std::string error = ErrorOf(
      [&] {
        ParallelTasks(3, [&](int64_t i) {
          ++started;
          while (started < 3) std::this_thread::yield();  // each task has a thread of its own
          const ErrorContext inner([&] { return fmt::format("at task {}", i); });
          if (i > 0) Fail(ExitCode::kData, "no");
        });
      },
      ExitCode::kData);
  EXPECT_EQ(error, "no\n  while at task 1\n  while testing");
  SetThreadCount(saved);
}

TEST(Shape, RefusesOverflowAndZero) {
  for (const int64_t extent : {1LL << 40, 1LL << 29}) {
    try {
      Shape({extent, extent});
      ADD_FAILURE() << "no error for " << extent;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::kConfig) << error.what();
    }
  }
  EXPECT_THROW(Shape({3, 0}), Error);
  EXPECT_EQ(Shape({2, 3, 4}).rows(), 6);
  EXPECT_EQ(Shape({2, 3, 4}).Without(1), Shape({2, 4}));
  EXPECT_EQ(Shape({2, 3, 4}).Without(-1), Shape({2, 3}));
  EXPECT_EQ(Shape({2, 3, 4}).With(0, 5), Shape({5, 3, 4}));
  EXPECT_EQ(Shape({2, 3, 4}).With(-1, 5), Shape({2, 3, 5}));
  EXPECT_THROW(Shape({2, 3, 4}).With(1, 0), Error);
  EXPECT_EQ(ToString(Shape({2, 3})), "[2, 3]");
}

}  // namespace
}  // namespace syntra
