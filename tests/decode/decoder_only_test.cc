// SPDX-License-Identifier: Apache-2.0
// Models without an encoder: inputs that are read at once or by steps, outputs after them in the
// same row.
#include <gtest/gtest.h>

#include <cmath>

#include "core/random.h"
#include "decode/batch_decoder.h"
#include "decode/decoding_trial.h"
#include "decode/distribution.h"
#include "decode/scorer.h"
#include "tests/base/source_directory.h"

namespace syntra {
namespace {

constexpr int64_t kRows = 3, kTogether = 12, kVocabulary = 32;

using Ids = std::vector<int32_t>;

// Rows of one example each, as training reads them.
TrialBatch Rows(int64_t rows = kRows) { return RandomBatch({rows, 0, kTogether}, kVocabulary); }

const std::string kPrefix = std::string(kUntied) + " bidirectional_prefix: true";

// The tokens before slot `length` of each row's sequence, padded to kTogether.
struct Inputs {
  Inputs(const TrialBatch& batch, int64_t length)
      : ids(batch.shape.rows * kTogether), segments(batch.shape.rows * kTogether) {
    for (int64_t row = 0; row < batch.shape.rows; ++row) {
      std::copy_n(batch.targets.begin() + row * kTogether, length, ids.begin() + row * kTogether);
      std::fill_n(segments.begin() + row * kTogether, length, 1);
    }
  }
  Ids ids, segments;
};

DecodeShape ShapeOf(int64_t rows, int64_t rows_per_input = 1) {
  return {.inputs = rows,
          .rows_per_input = rows_per_input,
          .input_length = kTogether,
          .max_length = kTogether,
          .together = kTogether};
}

// Decoders with each causal mixer, and those of other bodies.
std::map<std::string, ModelConfig> Decoders() {
  std::map<std::string, ModelConfig> decoders;
  for (const auto& [name, mixer] : TrialMixers()) {
    MixerConfig config;
    SYNTRA_CHECK(google::protobuf::TextFormat::ParseFromString(mixer, &config), "{}", mixer);
    const MixerTraits traits = MakeMixer(config)->traits();
    if (traits.causal && traits.not_incremental.empty()) {
      decoders[name] = TinyDecoder(mixer, kUntied);
    }
  }
  decoders["halting"] = TrialModels().at("decoder_only_halting");
  decoders["prefix"] = TinyDecoder(TrialMixers().at("random_and_dot"), kPrefix);
  decoders["prefix_by_own_bias"] = TinyDecoder(
      "attention { heads: 2 head_size: 8 relative_bias: false term { dot_product {} } "
      "term { relative_bias { buckets: 8 max_distance: 16 } } }",
      kPrefix);
  return decoders;
}

void ExpectLogits(std::span<const float> logits, const std::vector<double>& expected,
                  const std::string& where) {
  const double log_sum = LogSumExp(logits);
  for (int64_t id = 0; id < kVocabulary; ++id) {
    ASSERT_NEAR(logits[id] - log_sum, expected[id], 1e-5) << where << ", token " << id;
  }
}

class DecoderOnly : public testing::TestWithParam<std::pair<const std::string, ModelConfig>> {};

// Wherever the input ends, and after another input in the same session.
TEST_P(DecoderOnly, StepsGiveTheLogProbabilitiesOfTheFullPass) {
  DecodingTrial trial(GetParam().second, 1);
  TrialBatch batch = Rows();
  DecodeSession session(trial.Trained(), ShapeOf(kRows), NextTokens::kLogits);
  for (const int64_t length : {5, 0, 1, 11}) {
    SetPrefixes(&batch, length);
    const auto full = trial.LogProbabilities(batch);
    const Inputs inputs(batch, length);
    session.Start(inputs.ids, inputs.segments);
    EXPECT_EQ(session.max_length(), kTogether - length);
    Ids ids = session.first_tokens();
    for (int64_t t = length; t < kTogether; ++t) {
      for (int64_t row = 0; row < kRows; ++row) {
        ASSERT_EQ(ids[row], batch.decoder_ids[row * kTogether + t]);
      }
      session.Append(ids);
      for (int64_t row = 0; row < kRows; ++row) {
        ExpectLogits(session.logits()[row], full[row * kTogether + t],
                     fmt::format("input of {}, row {}, position {}", length, row, t));
        ids[row] = batch.targets[row * kTogether + t];
      }
    }
  }
}

// A prefix takes its input along to another row.
TEST_P(DecoderOnly, PrefixesTakeTheirInputsAlong) {
  constexpr int64_t kInput = 4, kPrefixes = 3;
  DecodingTrial trial(GetParam().second, 1);
  TrialBatch batch = Rows(kPrefixes);
  for (int64_t row = 0; row < kPrefixes; ++row) {  // of the same input
    std::copy_n(batch.targets.begin(), kInput, batch.targets.begin() + row * kTogether);
    std::copy_n(batch.targets.begin() + row * kTogether, kTogether - 1,
                batch.decoder_ids.begin() + row * kTogether + 1);
  }
  SetPrefixes(&batch, kInput);
  const auto full = trial.LogProbabilities(batch);
  const Inputs inputs(batch, kInput);
  DecodeSession session(trial.Trained(), ShapeOf(1, kPrefixes), NextTokens::kLogits);
  session.Start(std::span(inputs.ids).first(kTogether),
                std::span(inputs.segments).first(kTogether));
  const Ids order{2, 1, 2};
  const auto tokens = [&](int64_t t, const Ids& rows) {
    Ids ids;
    for (const int32_t row : rows) ids.push_back(batch.decoder_ids[row * kTogether + t]);
    return ids;
  };
  session.Append(session.first_tokens());
  session.Append(tokens(kInput + 1, {0, 1, 2}));
  session.TakePrefixes(order);
  session.Append(tokens(kInput + 2, order));
  for (int64_t row = 0; row < kPrefixes; ++row) {
    ExpectLogits(session.logits()[row], full[order[row] * kTogether + kInput + 2],
                 fmt::format("row {}", row));
  }
}

INSTANTIATE_TEST_SUITE_P(Mixers, DecoderOnly, testing::ValuesIn(Decoders()),
                         [](const auto& info) { return info.param.first; });

// With inputs that are read from left to right, and with a bidirectional prefix.
class DecoderBatches : public testing::TestWithParam<bool> {
 protected:
  static DecodeSettings Lengths() {
    return {.decoding = {},
            .input_length = kTogether - 1,
            .output_length = kTogether,
            .together = kTogether};
  }

  static const Tokenizer& AnyTokenizer() {
    static const Tokenizer tokenizer(SourceDirectory() + "/data/sample/spiece.model", 100);
    return tokenizer;
  }
  // Inputs of all lengths, in no order.
  static Ids InputOf(int i) {
    Ids ids;
    for (int k = 0; k < i * 7 % kTogether; ++k) {
      ids.push_back(static_cast<int32_t>(3 + UniformBelow(RandomAt({8, 1}, 100 * i + k)[0], 29)));
    }
    return ids;
  }

  DecodingTrial trial_{
      TinyDecoder(TrialMixers().at("random_and_dot"), GetParam() ? kPrefix : kUntied)};
};

TEST_P(DecoderBatches, AnOutputEndsWithItsRowAndDoesNotDependOnItsNeighbours) {
  std::vector<DecodeRequest> requests;
  for (int i = 0; i < 30; ++i) requests.push_back({InputOf(i), {}});
  for (const std::string& decoding : TrialDecodings()) {
    DecodeSettings settings = Lengths();
    settings.decoding = DecodingOf(decoding);
    settings.log_probabilities = true;
    BatchDecoder decoder(trial_.Trained(), AnyTokenizer(), settings);
    const std::vector<Hypotheses> together = decoder.Decode(requests);
    size_t longest = 0;
    for (size_t i = 0; i < requests.size(); i += 3) {
      const Hypotheses alone = decoder.Decode(std::span(&requests[i], 1)).front();
      ASSERT_EQ(alone.size(), together[i].size());
      for (size_t k = 0; k < alone.size(); ++k) {
        EXPECT_EQ(alone[k].ids, together[i][k].ids) << decoding << ", request " << i;
        EXPECT_NEAR(alone[k].log_probability, together[i][k].log_probability, 1e-4);
        longest = std::max(longest, requests[i].ids.size() + alone[k].ids.size());
      }
    }
    EXPECT_EQ(longest, static_cast<size_t>(kTogether));
  }
}

// Targets after their inputs have the log-probability that the full pass gives them.
TEST_P(DecoderBatches, ScoresAreThoseOfTheFullPass) {
  std::vector<ScoreRequest> requests;
  for (int i = 0; i < 12; ++i) {
    ScoreRequest& request = requests.emplace_back(ScoreRequest{InputOf(i), {}});
    for (int k = 0; k < 2; ++k) {
      const auto room = static_cast<int>(kTogether - request.ids.size());
      Ids target{static_cast<int32_t>(5 + k)};
      while (std::ssize(target) < std::min(room, 1 + (i + k) % 4)) target.push_back(9);
      request.targets.push_back(target);
    }
  }
  const auto scores = Scorer(trial_.Trained(), Lengths()).Score(requests);
  for (size_t i = 0; i < requests.size(); ++i) {
    for (size_t k = 0; k < 2; ++k) {
      Ids sequence = requests[i].ids;
      const size_t begin = sequence.size();
      const Ids& target = requests[i].targets[k];
      sequence.insert(sequence.end(), target.begin(), target.end());
      TrialBatch row = RandomBatch({1, 0, std::ssize(sequence)}, kVocabulary);
      std::copy(sequence.begin(), sequence.end() - 1, row.decoder_ids.begin() + 1);
      SetPrefixes(&row, static_cast<int64_t>(begin));
      const auto full = trial_.LogProbabilities(row);
      double expected = 0;
      for (size_t t = begin; t < sequence.size(); ++t) expected += full[t][sequence[t]];
      EXPECT_NEAR(scores[i][k], expected, 1e-5 * (1 + std::abs(expected)))
          << "request " << i << ", target " << k;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Prefixes, DecoderBatches, testing::Bool());

// What the models above are compared by: the mask changes what they compute.
TEST(BidirectionalPrefix, TheFirstPositionReadsTheLastInput) {
  DecodingTrial trial(TinyDecoder("", kPrefix));
  TrialBatch batch = Rows(1);
  SetPrefixes(&batch, 4);
  const auto before = trial.LogProbabilities(batch);
  for (const auto& [slot, changes] : {std::pair{4, true}, {5, false}}) {
    TrialBatch other = batch;
    other.decoder_ids[slot] = other.decoder_ids[slot] == 3 ? 4 : 3;
    EXPECT_EQ(trial.LogProbabilities(other)[0] != before[0], changes) << slot;
  }
}

}  // namespace
}  // namespace syntra
