// SPDX-License-Identifier: Apache-2.0
// Masked language modelling: which tokens are to be given, and what is read in their places.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "data/batch.h"
#include "data/objective.h"
#include "data/validation_data.h"
#include "tests/data/sample_data.h"

namespace syntra {
namespace {

using Ids = std::vector<int32_t>;

struct Masked {
  Ids inputs, targets;
  bool operator==(const Masked&) const = default;
};

Masked MaskedBy(const Objective& objective, const Ids& tokens, RandomKey key) {
  Masked masked{Ids(tokens.size()), Ids(tokens.size())};
  EXPECT_EQ(objective.LengthsOf({0, std::ssize(tokens)}, key),
            (ExampleLengths{std::ssize(tokens), std::ssize(tokens)}));
  objective.Write({{}, tokens}, key, {masked.inputs, masked.targets});
  return masked;
}

std::unique_ptr<Objective> Make() {
  DataConfig config = SampleConfig();
  config.set_objective(DataConfig::MASKED_LM);
  return MakeObjective("masked_lm", ObjectiveSettings::From(config, T5()));
}

Ids Tokens(int32_t length) {
  Ids tokens(length);
  std::iota(tokens.begin(), tokens.end(), 1000);
  return tokens;
}

TEST(MaskedLm, TheChosenTokensAreTargetsInTheirPlaces) {
  const std::unique_ptr<Objective> objective = Make();
  for (const auto& [length, chosen] : std::map<int32_t, int>{{1, 1}, {3, 1}, {10, 2}, {512, 77}}) {
    const Ids tokens = Tokens(length);
    for (uint32_t draw = 0; draw < 20; ++draw) {
      const Masked masked = MaskedBy(*objective, tokens, {draw, 7});
      int count = 0;
      for (int32_t i = 0; i < length; ++i) {
        if (masked.targets[i] == kIgnoredTarget) {
          EXPECT_EQ(masked.inputs[i], tokens[i]);
        } else {
          EXPECT_EQ(masked.targets[i], tokens[i]);
          ++count;
        }
      }
      EXPECT_EQ(count, chosen) << length;
      EXPECT_EQ(MaskedBy(*objective, tokens, {draw, 7}), masked);
    }
  }
}

// How often something of this share comes in so many trials: within five deviations.
void ExpectShare(int found, int trials, double share) {
  EXPECT_NEAR(found, trials * share, 5 * std::sqrt(trials * share * (1 - share)));
}

TEST(MaskedLm, ChoosesAllPlacesAlike) {
  const std::unique_ptr<Objective> objective = Make();
  constexpr int32_t kLength = 40, kDraws = 5000, kEach = 6;
  const Ids tokens = Tokens(kLength);
  std::vector<int> chosen(kLength);
  for (uint32_t draw = 0; draw < kDraws; ++draw) {
    const Masked example = MaskedBy(*objective, tokens, {draw, 3});
    for (int32_t i = 0; i < kLength; ++i) chosen[i] += example.targets[i] != kIgnoredTarget;
  }
  for (const int count : chosen) ExpectShare(count, kDraws, double{kEach} / kLength);
}

// Two of four tokens, in a vocabulary so small that each piece comes often. What is read in the
// place of one depends neither on which it is nor on the other.
TEST(MaskedLm, ReplacesAsBertDoes) {
  constexpr int32_t kLength = 4, kDraws = 100000;
  constexpr int32_t kPieces = 10, kSentinels = 3, kMask = kPieces + kSentinels, kToken = 1000;
  const std::unique_ptr<Objective> objective =
      MakeObjective("masked_lm", {.row = {kLength, kLength},
                                  .noise_density = 0.5,
                                  .first_sentinel = kMask,
                                  .sentinels = kSentinels});
  std::map<int32_t, int> read[kLength];
  int both_masked = 0;
  for (uint32_t draw = 0; draw < kDraws; ++draw) {
    const Masked example = MaskedBy(*objective, Ids(kLength, kToken), {draw, 3});
    for (int32_t i = 0; i < kLength; ++i) {
      if (example.targets[i] != kIgnoredTarget) ++read[i][example.inputs[i]];
    }
    both_masked += std::ranges::count(example.inputs, kMask) == 2;
  }
  ExpectShare(both_masked, kDraws, 0.8 * 0.8);
  for (const auto& counts : read) {
    int all = 0;
    for (const auto& [id, count] : counts) all += count;
    EXPECT_EQ(counts.size(), kPieces + 2u);
    for (const auto& [id, count] : counts) {
      EXPECT_TRUE((id >= 1 && id <= kPieces) || id == kMask || id == kToken) << id;
      ExpectShare(count, all, id == kMask ? 0.8 : id == kToken ? 0.1 : 0.1 / kPieces);
    }
  }
}

// Rows are those of causal language modelling.
TEST(MaskedLm, RowsHoldTheText) {
  DataConfig config = SampleConfig();
  config.set_input_length(64);
  config.set_objective(DataConfig::CAUSAL_LM);
  const ValidationData causal =
      ValidationData::Open(config, SharedRows(), T5(), SplitOf(PreparedSample(), kValidationSplit));
  config.set_objective(DataConfig::MASKED_LM);
  const ValidationData masked = ValidationData::Open(config, RowsOfTokenPairs(), T5(),
                                                     SplitOf(PreparedSample(), kValidationSplit));
  ASSERT_EQ(masked.example_count(), causal.example_count());
  for (int64_t i = 0; i < masked.example_count(); ++i) {
    const Batch rows = masked.Get(i, 1, 0, 1), text = causal.Get(i, 1, 0, 1);
    const auto inputs = rows.Row("encoder_ids", 0), targets = rows.Row("targets", 0),
               segments = rows.Row("encoder_segments", 0), tokens = text.Row("targets", 0);
    for (size_t t = 0; t < tokens.size(); ++t) {
      EXPECT_EQ(segments[t] > 0, tokens[t] > 0);
      if (tokens[t] == 0) continue;
      EXPECT_EQ(targets[t] == kIgnoredTarget ? inputs[t] : targets[t], tokens[t]);
    }
  }
}

}  // namespace
}  // namespace syntra
