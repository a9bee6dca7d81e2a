// SPDX-License-Identifier: Apache-2.0
// Strategies on a model of five tokens: beam search against all sequences, and against T5's
// algorithm written out over the full forward pass.
#include "decode/strategy.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>

#include "decode/decoding_trial.h"
#include "tests/base/kinds.h"

namespace syntra {
namespace {

constexpr int64_t kInputs = 6, kInputLength = 6, kMaxLength = 4, kVocabulary = 5;
constexpr int32_t kEos = 1;

using Ids = std::vector<int32_t>;

class FiveTokens : public testing::Test {
 protected:
  FiveTokens() : trial_(Model(), 1.5), batch_(RandomBatch({kInputs, kInputLength, kMaxLength}, 5)) {
    FillTables();
  }

  static ModelConfig Model() {
    ModelConfig config = TinyModel(TrialMixers().at("random_and_dot"), kUntied);
    config.set_vocabulary_size(kVocabulary);
    return config;
  }

  // Log-probabilities after every prefix of up to three tokens, by the full forward pass.
  void FillTables() {
    constexpr int64_t kPrefixes = kVocabulary * kVocabulary * kVocabulary;
    for (int64_t input = 0; input < kInputs; ++input) {
      TrialBatch all = RandomBatch({kPrefixes, kInputLength, kMaxLength}, kVocabulary);
      for (int64_t row = 0; row < kPrefixes; ++row) {
        std::copy_n(batch_.encoder_ids.begin() + input * kInputLength, kInputLength,
                    all.encoder_ids.begin() + row * kInputLength);
        int64_t digits = row;
        all.decoder_ids[row * kMaxLength] = 0;
        for (int64_t t = 1; t < kMaxLength; ++t, digits /= kVocabulary) {
          all.decoder_ids[row * kMaxLength + t] = static_cast<int32_t>(digits % kVocabulary);
        }
      }
      const auto rows = trial_.LogProbabilities(all);
      for (int64_t row = 0; row < kPrefixes; ++row) {
        const auto begin = all.decoder_ids.begin() + row * kMaxLength + 1;
        for (int64_t t = 0; t < kMaxLength; ++t) {
          tables_[input][Ids(begin, begin + t)] = rows[row * kMaxLength + t];
        }
      }
    }
  }

  std::vector<Hypotheses> Decode(const DecodingConfig& config, const Ids& ends = {kEos},
                                 int64_t max_length = kMaxLength) {
    const auto strategy = MakeStrategy(config);
    DecodeSession session(
        trial_.Trained(), {kInputs, strategy->rows_per_input(), kInputLength, max_length},
        strategy->next_tokens() == NextTokens::kBest ? NextTokens::kBestWithLogProbability
                                                     : strategy->next_tokens());
    session.Start(batch_.encoder_ids, batch_.encoder_segments);
    return strategy->Decode(
        session, {.inputs = kInputs,
                  .ends = [&](auto, auto, int32_t id) { return std::ranges::count(ends, id) > 0; },
                  .digests = {1, 2, 3, 4, 5, 6}});
  }

  double LogProbability(int64_t input, const Ids& ids) {
    double sum = 0;
    for (size_t t = 0; t < ids.size(); ++t) {
      sum += tables_[input].at(Ids(ids.begin(), ids.begin() + static_cast<int64_t>(t)))[ids[t]];
    }
    return sum;
  }

  static double Penalty(int64_t length, double alpha) {
    return std::pow((5.0 + static_cast<double>(length)) / 6.0, alpha);
  }

  // Every output that ends, by the most probable of these tokens, the best first.
  Hypotheses AllOutputs(int64_t input, double alpha, const Ids& ends = {kEos},
                        int64_t max_length = kMaxLength) {
    Hypotheses all;
    for (const auto& [prefix, rows] : tables_[input]) {
      if (std::ranges::find_first_of(prefix, ends) != prefix.end()) continue;
      if (std::ssize(prefix) >= max_length) continue;
      double end = rows[ends.front()];
      for (const int32_t id : ends) end = std::max(end, rows[id]);
      const double log_probability = LogProbability(input, prefix) + end;
      const auto length = static_cast<int64_t>(prefix.size()) + 1;
      all.push_back({prefix, log_probability, log_probability / Penalty(length, alpha)});
    }
    std::ranges::stable_sort(all, std::greater<>(), &Hypothesis::score);
    return all;
  }

  Hypotheses BeamByT5(int64_t input, size_t size, double alpha, bool early_stopping);

  DecodingTrial trial_;
  TrialBatch batch_;
  std::map<int64_t, std::map<Ids, std::vector<double>>> tables_;
};

void ExpectSame(const Hypotheses& got, const Hypotheses& want, const std::string& what) {
  ASSERT_EQ(got.size(), want.size()) << what;
  for (size_t i = 0; i < got.size(); ++i) {
    EXPECT_EQ(got[i].ids, want[i].ids) << what << ", output " << i;
    EXPECT_NEAR(got[i].log_probability, want[i].log_probability, 1e-5) << what;
    EXPECT_NEAR(got[i].score, want[i].score, 1e-5) << what;
  }
}

// Nothing is dropped by a beam that holds all beginnings.
TEST_F(FiveTokens, AWideBeamFindsTheBestOfAllSequences) {
  for (const double alpha : {0.0, 0.6, 3.0}) {
    const auto outputs =
        Decode(DecodingOf(fmt::format("beam {{ size: 64 alpha: {} }} outputs: 5", alpha)));
    for (int64_t input = 0; input < kInputs; ++input) {
      Hypotheses expected = AllOutputs(input, alpha);
      expected.resize(5);
      ExpectSame(outputs[input], expected, fmt::format("input {}, alpha {}", input, alpha));
    }
  }
}

// Gaps end at EOS or at the next sentinel, whichever: each output comes once, with its best end.
TEST_F(FiveTokens, OutputsWithSeveralEndsDiffer) {
  const Ids ends{kEos, 2, 3};
  for (const double alpha : {0.0, 0.6}) {
    const auto wide =
        Decode(DecodingOf(fmt::format("beam {{ size: 64 alpha: {} }} outputs: 5", alpha)), ends);
    const auto narrow =
        Decode(DecodingOf(fmt::format("beam {{ size: 3 alpha: {} }} outputs: 3", alpha)), ends);
    for (int64_t input = 0; input < kInputs; ++input) {
      Hypotheses expected = AllOutputs(input, alpha, ends);
      expected.resize(5);
      ExpectSame(wide[input], expected, fmt::format("input {}, alpha {}", input, alpha));
      std::set<Ids> distinct;
      for (const Hypothesis& output : narrow[input]) distinct.insert(output.ids);
      EXPECT_EQ(distinct.size(), 3u) << input;
    }
  }
}

// Most tokens are ends, more than are looked at in a step. The beam still holds all beginnings, of
// which there are `size` at most, and so finds the best of all outputs.
TEST_F(FiveTokens, EndsDoNotTakeThePlacesOfBeginnings) {
  struct Setting {
    Ids ends;
    int64_t max_length;
  };
  for (const auto& [ends, max_length] :
       {Setting{{kEos, 2, 3, 4}, kMaxLength}, Setting{{0, kEos, 2, 3}, kMaxLength},
        Setting{{kEos, 2, 3}, 2}, Setting{{kEos, 3, 4}, 2}}) {
    for (const double alpha : {0.0, 0.6, 3.0}) {
      const auto outputs =
          Decode(DecodingOf(fmt::format("beam {{ size: 2 alpha: {} }} outputs: 2", alpha)), ends,
                 max_length);
      for (int64_t input = 0; input < kInputs; ++input) {
        Hypotheses expected = AllOutputs(input, alpha, ends, max_length);
        expected.resize(2);
        ExpectSame(outputs[input], expected,
                   fmt::format("{} ends, the last {}, input {}, alpha {}", ends.size(), ends.back(),
                               input, alpha));
      }
    }
  }
}

// The steps of mesh_tensorflow/beam_search.py, with its arrays of fixed size. It has no
// early_stopping.
Hypotheses FiveTokens::BeamByT5(int64_t input, size_t size, double alpha, bool early_stopping) {
  constexpr double kNever = -1e9;
  struct Sequence {
    Ids ids;
    double log_probability, score;
    bool finished;
  };
  std::vector<Sequence> alive(size, {{}, kNever, 0, false}), finished(size, {{}, 0, kNever, false});
  alive[0].log_probability = 0;
  const auto by_score = [](const Sequence& a, const Sequence& b) { return a.score > b.score; };
  for (int64_t i = 0; i < kMaxLength; ++i) {
    double lowest = 0;
    bool any = false;
    for (const Sequence& sequence : finished) {
      lowest = std::min(lowest, sequence.finished ? sequence.score : 0.0);
      any |= sequence.finished;
    }
    if (any && lowest > alive[0].log_probability / Penalty(kMaxLength, alpha)) break;
    if (early_stopping && std::ranges::all_of(finished, &Sequence::finished)) break;
    std::vector<Sequence> grown;
    for (const Sequence& sequence : alive) {
      for (int32_t id = 0; id < kVocabulary; ++id) {
        if (sequence.log_probability <= kNever) continue;
        Sequence next = sequence;
        next.log_probability += tables_[input].at(sequence.ids)[id];
        next.ids.push_back(id);
        next.score = next.log_probability / Penalty(i + 1, alpha);
        next.finished = id == kEos;
        grown.push_back(next);
      }
    }
    std::ranges::stable_sort(grown, by_score);
    grown.resize(std::min(grown.size(), 2 * size));
    std::vector<Sequence> still_alive;
    for (const Sequence& sequence : grown) {
      (sequence.finished ? finished : still_alive).push_back(sequence);
    }
    still_alive.resize(size, {{}, kNever, 0, false});
    alive = still_alive;
    std::ranges::stable_sort(finished, by_score);
    finished.resize(size);
  }
  Sequence best = finished[0].finished ? finished[0] : alive[0];
  if (best.finished) best.ids.pop_back();
  return {{best.ids, best.log_probability, best.score}};
}

TEST_F(FiveTokens, NarrowBeamsGoAsT5s) {
  std::set<Ids> distinct;
  int stopped_too_early = 0;
  for (const int size : {2, 3, 4}) {
    for (const double alpha : {0.0, 0.6, 1.5, 8.0}) {
      std::vector<Hypotheses> patient;
      for (const bool early_stopping : {false, true}) {
        const auto outputs = Decode(DecodingOf(fmt::format(
            "beam {{ size: {} alpha: {} early_stopping: {} }}", size, alpha, early_stopping)));
        for (int64_t input = 0; input < kInputs; ++input) {
          ExpectSame(outputs[input], BeamByT5(input, size, alpha, early_stopping),
                     fmt::format("input {}, size {}, alpha {}, early_stopping {}", input, size,
                                 alpha, early_stopping));
          distinct.insert(outputs[input][0].ids);
          if (!early_stopping) continue;
          EXPECT_LE(outputs[input][0].score, patient[input][0].score);
          stopped_too_early += outputs[input][0].score < patient[input][0].score;
        }
        patient = outputs;
      }
    }
  }
  EXPECT_GT(distinct.size(), 3u) << "the outputs hardly depend on anything";
  EXPECT_GT(stopped_too_early, 0) << "early_stopping makes no difference";
}

TEST_F(FiveTokens, ABeamOfOneIsGreedy) {
  const auto greedy = Decode(DecodingOf("greedy {}"));
  EXPECT_EQ(Decode(DecodingOf("beam { size: 1 alpha: 0 }")), greedy);
  const auto penalised = Decode(DecodingOf("beam { size: 1 alpha: 0.6 }"));
  for (int64_t input = 0; input < kInputs; ++input) {
    const Hypothesis& output = penalised[input].front();
    EXPECT_EQ(output.ids, greedy[input].front().ids);
    // What ends an output counts as a token, if there was room for it.
    const int64_t length = std::min<int64_t>(std::ssize(output.ids) + 1, kMaxLength);
    EXPECT_NEAR(output.score, output.log_probability / Penalty(length, 0.6), 1e-5);
  }
}

TEST_F(FiveTokens, WhereTooFewEndBeginningsFollow) {
  const DecodingConfig config = DecodingOf("beam { size: 100 } outputs: 4");
  const auto strategy = MakeStrategy(config);
  DecodeSession session(trial_.Trained(), {kInputs, 100, kInputLength, 3}, NextTokens::kLogits);
  session.Start(batch_.encoder_ids, batch_.encoder_segments);
  const auto outputs = strategy->Decode(
      session,
      {.inputs = 1,
       .ends = [](auto, const auto& prefix, int32_t id) { return prefix.empty() && id == kEos; },
       .digests = {}});
  ASSERT_EQ(outputs[0].size(), 4u);
  EXPECT_EQ(outputs[0][0].ids, Ids());
  for (size_t i = 1; i < 4; ++i) {
    EXPECT_EQ(outputs[0][i].ids.size(), 3u);
    EXPECT_NEAR(outputs[0][i].log_probability, LogProbability(0, outputs[0][i].ids), 1e-5);
    EXPECT_NEAR(outputs[0][i].score,
                outputs[0][i].log_probability / Penalty(3, config.beam().alpha()), 1e-5);
    if (i == 1) continue;
    EXPECT_LE(outputs[0][i].score, outputs[0][i - 1].score);
  }
}

TEST_F(FiveTokens, WhatNeverEndsIsTheMostProbableBeginning) {
  const auto strategy = MakeStrategy(DecodingOf("beam { size: 125 }"));
  DecodeSession session(trial_.Trained(), {kInputs, 125, kInputLength, 3}, NextTokens::kLogits);
  session.Start(batch_.encoder_ids, batch_.encoder_segments);
  const auto outputs = strategy->Decode(
      session, {.inputs = 1, .ends = [](auto, auto, auto) { return false; }, .digests = {}});
  ASSERT_EQ(outputs.size(), 1u);
  Ids best;
  for (const auto& [prefix, rows] : tables_[0]) {
    if (prefix.size() == 3 &&
        (best.empty() || LogProbability(0, prefix) > LogProbability(0, best))) {
      best = prefix;
    }
  }
  ASSERT_EQ(outputs[0].size(), 1u);
  EXPECT_EQ(outputs[0][0].ids, best);
  EXPECT_NEAR(outputs[0][0].log_probability, LogProbability(0, best), 1e-5);
}

// 3000 samples of each input: how often each output comes, against its probability.
TEST_F(FiveTokens, SamplesHaveTheirProbabilities) {
  constexpr int kSamples = 3000;
  const auto outputs = Decode(DecodingOf(fmt::format("sample {{}} outputs: {}", kSamples)));
  for (int64_t input = 0; input < kInputs; ++input) {
    std::map<Ids, int> counts;
    for (const Hypothesis& output : outputs[input]) {
      ++counts[output.ids];
      const bool ended = output.ids.size() < static_cast<size_t>(kMaxLength);
      Ids whole = output.ids;
      if (ended) whole.push_back(kEos);
      EXPECT_NEAR(output.log_probability, LogProbability(input, whole), 1e-5);
    }
    for (const Hypothesis& output : AllOutputs(input, 0)) {
      const double p = std::exp(output.log_probability);
      if (p < 0.01) continue;
      EXPECT_NEAR(counts[output.ids], kSamples * p, 4.5 * std::sqrt(kSamples * p * (1 - p)));
    }
  }
}

TEST_F(FiveTokens, SamplesFollowFromSeedAndInput) {
  const auto samples = [&](const std::string& seed) {
    return Decode(DecodingOf("sample { seed: " + seed + " } outputs: 8"));
  };
  EXPECT_EQ(samples("5"), samples("5"));
  EXPECT_NE(samples("5"), samples("6"));
}

TEST_F(FiveTokens, TheMostProbableTokenAloneIsGreedy) {
  const auto drawn = Decode(DecodingOf("sample { top_k: 1 }")), best = Decode(DecodingOf(""));
  for (int64_t input = 0; input < kInputs; ++input) {
    ExpectSame(drawn[input], best[input], fmt::format("input {}", input));
  }
}

TEST(Strategies, AreThoseOfTheSchema) {
  const std::vector<std::string> names = StrategyNames();
  EXPECT_EQ(std::set(names.begin(), names.end()), KindNames<DecodingConfig>("strategy"));
  EXPECT_EQ(StrategyName({}), "greedy");
  EXPECT_EQ(StrategyName(DecodingOf("sample {}")), "sample");
}

}  // namespace
}  // namespace syntra
