// SPDX-License-Identifier: Apache-2.0
// Masked language modelling: which tokens are to be given, and what is read in their places.
#include <gtest/gtest.h>

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

// Shares and places of many draws, within five deviations.
TEST(MaskedLm, ChoosesAndReplacesAsBertDoes) {
  const std::unique_ptr<Objective> objective = Make();
  constexpr int32_t kLength = 40, kDraws = 5000, kEach = 6;
  const Ids tokens = Tokens(kLength);
  const int32_t mask = T5().SentinelId(0), first_sentinel = T5().SentinelId(T5().extra_ids() - 1);
  int masked = 0, kept = 0, random = 0;
  double sum = 0;
  std::vector<int> chosen(kLength);
  for (uint32_t draw = 0; draw < kDraws; ++draw) {
    const Masked example = MaskedBy(*objective, tokens, {draw, 3});
    for (int32_t i = 0; i < kLength; ++i) {
      if (example.targets[i] == kIgnoredTarget) continue;
      ++chosen[i];
      const int32_t read = example.inputs[i];
      masked += read == mask;
      kept += read == tokens[i];
      if (read == mask || read == tokens[i]) continue;
      ++random;
      sum += read;
      EXPECT_GT(read, 0);
      EXPECT_LT(read, first_sentinel);
    }
  }
  const double all = double{kDraws} * kEach;
  const auto expect = [](double found, double trials, double share) {
    EXPECT_NEAR(found, trials * share, 5 * std::sqrt(trials * share * (1 - share)));
  };
  expect(masked, all, 0.8);
  expect(random, all, 0.1);
  expect(kept, all, 0.1);
  for (const int count : chosen) expect(count, kDraws, double{kEach} / kLength);
  EXPECT_NEAR(sum / random, first_sentinel / 2.0, 5 * first_sentinel / std::sqrt(12.0 * random));
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
