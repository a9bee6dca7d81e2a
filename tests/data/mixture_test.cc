// SPDX-License-Identifier: Apache-2.0
#include "data/mixture.h"

#include <map>
#include <numeric>

#include "tests/data/corpus_files.h"
#include "tests/data/numbered_source.h"

namespace syntra {
namespace {

using SourceList = std::vector<std::shared_ptr<const ExampleSource>>;

// Ids of source k begin at 1,000,000 (k + 1).
constexpr int32_t kIdsOfSource = 1000000;

SourceList SourcesOf(const std::vector<int64_t>& sizes) {
  SourceList sources;
  for (const int64_t size : sizes) {
    sources.push_back(std::make_shared<NumberedSource>(
        fmt::format("source {}", sources.size()),
        Numbers{.first_id = kIdsOfSource * (static_cast<int32_t>(sources.size()) + 1),
                .size = [size](int64_t) { return size; }}));
  }
  return sources;
}

// The examples of each source in the order in which the mixture's first epochs draw them.
std::map<int32_t, std::vector<int32_t>> Draws(const Mixture& mixture, int64_t epochs) {
  std::map<int32_t, std::vector<int32_t>> draws;
  for (int64_t epoch = 0; epoch < epochs; ++epoch) {
    const auto examples = mixture.Epoch(epoch);
    for (int64_t i = 0; i < examples->size(); ++i) {
      const int32_t number = NumberOf(*examples, i);
      draws[number / kIdsOfSource - 1].push_back(number % kIdsOfSource);
    }
  }
  return draws;
}

// GLUE's training splits but WNLI's, which T5's mixture leaves out: in proportion to their
// examples.
TEST(MixtureShares, AreTheExamplesAsInT5sGlue) {
  const std::vector<int64_t> glue = {8551, 67349, 3668, 5749, 363849, 392702, 104743, 2490};
  EXPECT_EQ(MixtureShares(glue, {}), glue);
}

// By hand: min(n, 100)^(1/2) gives 10, 10 and 2, out of 100 + 100 + 4 draws.
TEST(MixtureShares, KnowLimitAndTemperature) {
  const std::vector<int64_t> sizes = {100000, 100, 4};
  EXPECT_EQ(MixtureShares(sizes, {.limit = 100}), (std::vector<int64_t>{100, 100, 4}));
  EXPECT_EQ(MixtureShares(sizes, {.limit = 100, .temperature = 2}),
            (std::vector<int64_t>{93, 93, 19}));
  // All alike in the end; a source is never left out.
  EXPECT_EQ(MixtureShares(sizes, {.limit = 100, .temperature = 1e6}),
            (std::vector<int64_t>{68, 68, 68}));
  // The largest alone in the end, also where its rate is larger than any number.
  for (const double cold : {1e-3, 1e-300, 1e-320}) {
    EXPECT_EQ(MixtureShares(sizes, {.temperature = cold}), (std::vector<int64_t>{100104, 1, 1}));
    EXPECT_EQ(MixtureShares(sizes, {.limit = 100, .temperature = cold}),
              (std::vector<int64_t>{102, 102, 1}));
  }
  const std::vector<int64_t> uneven = {1000000000, 1};
  EXPECT_EQ(MixtureShares(uneven, {.temperature = 0.5})[1], 1);
}

TEST(Mixture, EveryEpochHasTheShares) {
  const Mixture mixture("all", SourcesOf({50, 7, 400}), {.limit = 60, .temperature = 2}, 1);
  const int64_t draws = std::accumulate(mixture.shares().begin(), mixture.shares().end(), 0);
  for (int64_t epoch = 0; epoch < 20; ++epoch) {
    const auto examples = mixture.Epoch(epoch);
    ASSERT_EQ(examples->size(), draws);
    std::vector<int64_t> counts(3);
    for (int64_t i = 0; i < draws; ++i) {
      ++counts.at(NumberOf(*examples, i) / kIdsOfSource - 1);
    }
    EXPECT_EQ(counts, mixture.shares());
  }
}

// Whatever the shares, all examples of a source are drawn before any of them is drawn again.
TEST(Mixture, SourcesGoThroughTheirOwnEpochs) {
  const std::vector<int64_t> sizes = {50, 7, 400};
  const Mixture mixture("all", SourcesOf(sizes), {.limit = 60, .temperature = 3}, 1);
  for (const auto& [source, draws] : Draws(mixture, 40)) {
    std::vector<int32_t> all(sizes[source]);
    std::iota(all.begin(), all.end(), 0);
    std::vector<int32_t> before;
    for (size_t begin = 0; begin + all.size() <= draws.size(); begin += all.size()) {
      const std::vector<int32_t> epoch(draws.begin() + begin, draws.begin() + begin + all.size());
      EXPECT_NE(epoch, before);
      EXPECT_TRUE(std::ranges::is_permutation(epoch, all));
      before = epoch;
    }
    EXPECT_FALSE(before.empty());
  }
}

// Long documents make the epochs of a corpus differ in size.
TEST(Mixture, SourcesMayChangeTheirSize) {
  const auto size = [](int64_t epoch) { return 5 + epoch % 3; };
  const Mixture mixture("all", {std::make_shared<NumberedSource>("a", Numbers{.size = size})}, {},
                        1);
  std::vector<int32_t> draws;
  for (int64_t epoch = 0; epoch < 30; ++epoch) {
    const auto examples = mixture.Epoch(epoch);
    for (int64_t i = 0; i < examples->size(); ++i) draws.push_back(NumberOf(*examples, i));
  }
  size_t begin = 0;
  for (int64_t epoch = 0; begin + size(epoch) <= draws.size(); begin += size(epoch++)) {
    std::vector<int32_t> all(size(epoch));
    std::iota(all.begin(), all.end(), 1);
    EXPECT_TRUE(std::is_permutation(all.begin(), all.end(), draws.begin() + begin,
                                    draws.begin() + begin + all.size()));
  }
  EXPECT_GT(begin, 100u);
}

TEST(Mixture, OrdersFollowFromSeedSourceAndEpoch) {
  const Mixture one("all", SourcesOf({100, 100}), {}, 1), two("all", SourcesOf({100, 100}), {}, 2);
  auto first = Draws(one, 2), second = Draws(two, 2);
  EXPECT_NE(first[0], first[1]);
  EXPECT_NE(first[0], second[0]);
  // A mixture that is asked for a late epoch first gives the same.
  const Mixture again("all", SourcesOf({100, 100}), {}, 1);
  const auto late = again.Epoch(7), expected = one.Epoch(7);
  for (int64_t i = 0; i < late->size(); ++i) {
    EXPECT_EQ(NumberOf(*late, i), NumberOf(*expected, i));
  }
}

TEST(Mixture, RefusesAnEmptySource) {
  EXPECT_EQ(DataErrorOf([] {
              Mixture("all", SourcesOf({3, 0}), {}, 1);
            }),
            "source 1 has no examples");
}

TEST(Mixture, ItsDigestIsThatOfItsSources) {
  const Mixture mixture("a", SourcesOf({3, 4}), {}, 1), other("b", SourcesOf({3, 4}), {}, 2);
  EXPECT_EQ(mixture.ContentDigest(), other.ContentDigest());
  EXPECT_NE(mixture.ContentDigest(), Mixture("a", SourcesOf({3}), {}, 1).ContentDigest());
}

}  // namespace
}  // namespace syntra
