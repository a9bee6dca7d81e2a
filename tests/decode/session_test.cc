// SPDX-License-Identifier: Apache-2.0
// Steps with caches against the full forward pass over the same prefix, and greedy decoding.
#include "decode/session.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "decode/decoding_trial.h"
#include "decode/distribution.h"
#include "mixers/mixer_cases.h"
#include "tests/base/error_of.h"

namespace syntra {
namespace {

constexpr int64_t kRows = 3, kInputs = 9, kOutputs = 12, kVocabulary = 32;
constexpr int32_t kNoEnd = -1;

using Ids = std::vector<int32_t>;

DecodeShape ShapeOf(const TrialBatch& batch, int64_t rows_per_input = 1,
                    int64_t max_length = kOutputs) {
  return {batch.shape.rows, rows_per_input, batch.shape.input_length, max_length};
}

// One example padded at the end.
TrialBatch Batch(int64_t rows = kRows) {
  TrialBatch batch = RandomBatch({rows, kInputs, kOutputs}, kVocabulary);
  for (int64_t i = kInputs - 3; i < kInputs; ++i) batch.encoder_segments[i] = 0;
  return batch;
}

Hypotheses Greedy(DecodeSession& session, const TrialBatch& batch, const auto& ends) {
  session.Start(batch.encoder_ids, batch.encoder_segments);
  const auto strategy = MakeStrategy({});
  Hypotheses outputs;
  for (const Hypotheses& output :
       strategy->Decode(session, {.inputs = batch.shape.rows, .ends = ends, .digests = {}})) {
    EXPECT_EQ(output.size(), 1u);
    outputs.push_back(output.front());
  }
  return outputs;
}

std::vector<Ids> Greedy(DecodingTrial& trial, const TrialBatch& batch, DType activations,
                        int32_t end_id, int64_t max_length = kOutputs) {
  DecodeSession session(trial.Trained(activations), ShapeOf(batch, 1, max_length),
                        NextTokens::kBest);
  std::vector<Ids> ids;
  for (const Hypothesis& output :
       Greedy(session, batch, [end_id](auto, auto, int32_t id) { return id == end_id; })) {
    ids.push_back(output.ids);
  }
  return ids;
}

// The decoder reads the outputs.
void ReadOutputs(const std::vector<Ids>& outputs, TrialBatch& batch) {
  for (size_t row = 0; row < outputs.size(); ++row) {
    const auto to = batch.decoder_ids.begin() + static_cast<int64_t>(row) * kOutputs;
    *to = 0;
    std::copy(outputs[row].begin(), outputs[row].end() - 1, to + 1);
  }
}

// The steps of a session give the log-probabilities of the full forward pass.
void ExpectStepsOfTheFullPass(const ModelConfig& config) {
  DecodingTrial trial(config, 1);
  const TrialBatch batch = Batch();
  const auto full = trial.LogProbabilities(batch);
  DecodeSession session(trial.Trained(), ShapeOf(batch), NextTokens::kLogits);
  session.Start(batch.encoder_ids, batch.encoder_segments);
  for (int64_t t = 0; t < kOutputs; ++t) {
    Ids ids;
    for (int64_t row = 0; row < kRows; ++row) ids.push_back(batch.decoder_ids[row * kOutputs + t]);
    session.Append(ids);
    for (int64_t row = 0; row < kRows; ++row) {
      const std::span<const float> logits = session.logits()[row];
      const double log_sum = LogSumExp(logits);
      for (int64_t id = 0; id < kVocabulary; ++id) {
        ASSERT_NEAR(logits[id] - log_sum, full[row * kOutputs + t][id], 1e-5)
            << "row " << row << ", position " << t << ", token " << id;
      }
    }
  }
}

class Session : public testing::TestWithParam<MixerInModel> {};

TEST_P(Session, GivesTheLogProbabilitiesOfTheFullForwardPass) {
  ExpectStepsOfTheFullPass(TinyModel(GetParam().text, kUntied));
}

TEST_P(Session, GreedyTakesTheBestOfTheFullForwardPass) {
  DecodingTrial trial(TinyModel(GetParam().text, kUntied));
  for (const DType activations : {DType::kF32, DType::kBF16}) {
    TrialBatch batch = Batch();
    const auto outputs = Greedy(trial, batch, activations, kNoEnd);
    std::set<int32_t> distinct;
    for (const Ids& ids : outputs) {
      ASSERT_EQ(ids.size(), static_cast<size_t>(kOutputs));
      distinct.insert(ids.begin(), ids.end());
    }
    EXPECT_GT(distinct.size(), 2u) << "the outputs hardly depend on anything";
    ReadOutputs(outputs, batch);
    const auto full = trial.LogProbabilities(batch, activations);
    // The two passes round differently: a choice must be within this of the best.
    const double slack = activations == DType::kF32 ? 1e-5 : 0.08;
    for (int64_t row = 0; row < kRows; ++row) {
      for (int64_t t = 0; t < kOutputs; ++t) {
        const std::vector<double>& scores = full[row * kOutputs + t];
        const double best = *std::ranges::max_element(scores);
        EXPECT_GE(scores[outputs[row][t]], best - slack * (1 + std::abs(best)))
            << "row " << row << ", position " << t;
      }
    }
  }
}

// In the caches that sessions share there may be anything, such as sums in f32 where another one
// keeps rows in bf16.
TEST_P(Session, ReadsNothingThatOthersLeftInTheCaches) {
  DecodingTrial trial(TinyModel(GetParam().text));
  const TrialBatch batch = Batch();
  for (const DType activations : {DType::kF32, DType::kBF16}) {
    const TrainedModel model = trial.Trained(activations);
    TransientBuffer caches(model.backend.device());
    DecodeSession session(model, ShapeOf(batch), NextTokens::kBest, &caches);
    const auto never = [](auto, auto, int32_t) { return false; };
    const Hypotheses fresh = Greedy(session, batch, never);
    const std::vector<std::byte> not_a_number(caches.size(), std::byte{0xFF});
    model.backend.device().CopyIn(caches.data(), not_a_number.data(), not_a_number.size());
    EXPECT_EQ(Greedy(session, batch, never), fresh);
  }
}

TEST_P(Session, RowsAreIndependent) {
  DecodingTrial trial(TinyModel(GetParam().text, kUntied));
  const TrialBatch batch = Batch();
  const auto together = Greedy(trial, batch, DType::kF32, kNoEnd);
  for (int64_t row = 0; row < kRows; ++row) {
    TrialBatch alone = Batch(1);
    std::copy_n(batch.encoder_ids.begin() + row * kInputs, kInputs, alone.encoder_ids.begin());
    std::copy_n(batch.encoder_segments.begin() + row * kInputs, kInputs,
                alone.encoder_segments.begin());
    EXPECT_EQ(Greedy(trial, alone, DType::kF32, kNoEnd)[0], together[row]);
  }
}

// After every token two of an input's four prefixes, other ones each time, go on in the rows of the
// other two as well; the logits must be those of a pass over the prefix that each row has then.
TEST_P(Session, RowsGoOnWithThePrefixesOfOthers) {
  constexpr int64_t kWidth = 4, kSteps = 6;
  DecodingTrial trial(TinyModel(GetParam().text, kUntied), 1);
  for (const DType activations : {DType::kF32, DType::kBF16}) {
    const TrialBatch batch = Batch(2);
    DecodeSession session(trial.Trained(activations), ShapeOf(batch, kWidth, kSteps),
                          NextTokens::kLogits);
    session.Start(batch.encoder_ids, batch.encoder_segments);
    std::vector<Ids> prefixes(2 * kWidth);
    for (int32_t step = 0; step < kSteps; ++step) {
      Ids next, parents;
      for (int32_t row = 0; row < 2 * kWidth; ++row) {
        next.push_back(step == 0 ? 0 : 3 + (7 * row + 5 * step) % 29);
        const int32_t of_input = (row % kWidth + step) % kWidth;
        parents.push_back(of_input < 2 ? row : row / kWidth * kWidth + (row + 2) % kWidth);
        prefixes[row].push_back(next.back());
      }
      session.Append(next);
      if (step + 1 == kSteps) break;
      session.TakePrefixes(parents);
      const auto before = prefixes;
      for (size_t row = 0; row < prefixes.size(); ++row) prefixes[row] = before[parents[row]];
    }
    TrialBatch full = RandomBatch({2 * kWidth, kInputs, kSteps}, kVocabulary);
    for (int64_t row = 0; row < 2 * kWidth; ++row) {
      std::ranges::copy(prefixes[row], full.decoder_ids.begin() + row * kSteps);
      const int64_t from = row / kWidth * kInputs, to = row * kInputs;
      std::copy_n(batch.encoder_ids.begin() + from, kInputs, full.encoder_ids.begin() + to);
      std::copy_n(batch.encoder_segments.begin() + from, kInputs,
                  full.encoder_segments.begin() + to);
    }
    const auto expected = trial.LogProbabilities(full, activations);
    const double tolerance = activations == DType::kF32 ? 1e-5 : 0.05;
    for (int64_t row = 0; row < 2 * kWidth; ++row) {
      const std::span<const float> logits = session.logits()[row];
      for (int64_t id = 0; id < kVocabulary; ++id) {
        ASSERT_NEAR(logits[id] - LogSumExp(logits), expected[row * kSteps + kSteps - 1][id],
                    tolerance)
            << "row " << row << ", token " << id;
      }
    }
  }
}

// Of twelve inputs, which differ in length, others are finished after each step. The rows of those
// that remain have the logits of the full pass, and on the host finished ones are left out.
TEST_P(Session, FinishedInputsAreLeftOut) {
  constexpr int64_t kMany = 12;
  constexpr std::pair<int64_t, int64_t> kSteps[] = {{11, 12}, {8, 8}, {3, 8}, {1, 8}};
  DecodingTrial trial(TinyModel(GetParam().text, kUntied), 1);
  TrialBatch batch = RandomBatch({kMany, kInputs, kOutputs}, kVocabulary);
  for (int64_t row = 0; row < kMany; ++row) {
    const auto end = batch.encoder_segments.begin() + (row + 1) * kInputs;
    std::fill(end - row % 5, end, 0);
  }
  const auto full = trial.LogProbabilities(batch);
  DecodeSession session(trial.Trained(), ShapeOf(batch), NextTokens::kLogits);
  for (int repeat = 0; repeat < 2; ++repeat) {
    session.Start(batch.encoder_ids, batch.encoder_segments);
    Ids open(kMany);
    std::iota(open.begin(), open.end(), 0);
    int64_t t = 0;
    for (const auto& [remain, computed] : kSteps) {
      while (std::ssize(open) > remain) {
        const auto which = open.begin() + (3 * t + repeat) % std::ssize(open);
        session.Finish(*which);
        open.erase(which);
      }
      Ids ids(kMany);
      for (const int32_t row : open) ids[row] = batch.decoder_ids[row * kOutputs + t];
      session.Append(ids);
      const LogitRows logits = session.logits();
      EXPECT_EQ(std::ssize(logits.all),
                (trial.backend.device().is_host() ? computed : kMany) * kVocabulary);
      for (const int32_t row : open) {
        const double log_sum = LogSumExp(logits[row]);
        for (int64_t id = 0; id < kVocabulary; ++id) {
          ASSERT_NEAR(logits[row][id] - log_sum, full[row * kOutputs + t][id], 1e-5)
              << "row " << row << ", position " << t << ", token " << id;
        }
      }
      ++t;
    }
  }
}

// The beams of inputs 0 and 4 are the same whether the others, finished one after another, are left
// out or not.
TEST(SessionOfBeams, FinishedInputsAreLeftOut) {
  constexpr int64_t kMany = 8, kWidth = 3;
  DecodingTrial trial(TinyModel("", kUntied), 1);
  const TrialBatch batch = RandomBatch({kMany, kInputs, kOutputs}, kVocabulary);
  const auto last_logits = [&](bool finish) {
    DecodeSession session(trial.Trained(), ShapeOf(batch, kWidth), NextTokens::kLogits);
    session.Start(batch.encoder_ids, batch.encoder_segments);
    Ids ids(kMany * kWidth), parents(kMany * kWidth);
    for (int32_t t = 0; t < 4; ++t) {
      session.Append(ids);
      for (int64_t input = 0; finish && input < kMany; ++input) {
        if (input % 4 > 3 - t) session.Finish(input);
      }
      for (int32_t row = 0; row < kMany * kWidth; ++row) {
        ids[row] = (5 * row + t) % kVocabulary;
        parents[row] = row / kWidth * kWidth + t % kWidth;
      }
      session.TakePrefixes(parents);
    }
    session.Append(ids);
    std::vector<float> logits;
    for (const int64_t input : {0, 4}) {
      for (int64_t row = input * kWidth; row < (input + 1) * kWidth; ++row) {
        std::ranges::copy(session.logits()[row], std::back_inserter(logits));
      }
    }
    return logits;
  };
  const std::vector<float> all = last_logits(false), without = last_logits(true);
  for (size_t i = 0; i < all.size(); ++i) ASSERT_NEAR(without[i], all[i], 1e-5);
}

TEST_P(Session, CachesWhatTheScoresRead) {
  const ModelConfig config = TinyModel(GetParam().text);
  if (config.has_decoder_mixer()) GTEST_SKIP() << "another mixer decodes";
  DecodingTrial trial(config);
  const int64_t layers = 2, width = 16, bytes = sizeof(float);
  const int64_t cross = 2 * layers * kRows * kInputs * width;
  const int64_t own = layers * kRows * GetParam().Kept(kOutputs);
  DecodeSession session(trial.Trained(), ShapeOf(Batch()), NextTokens::kBest);
  EXPECT_EQ(session.cache_bytes(), static_cast<size_t>((cross + own) * bytes))
      << "its case says what a layer keeps";
  // Beams repeat what is theirs, but not what they read of the encoder.
  DecodeSession beams(trial.Trained(), ShapeOf(Batch(), 4), NextTokens::kLogits);
  EXPECT_EQ(beams.cache_bytes(), static_cast<size_t>((cross + 4 * own) * bytes));
}

INSTANTIATE_TEST_SUITE_P(Mixers, Session, testing::ValuesIn(MixersInModels()),
                         [](const auto& info) { return info.param.name; });

TEST(BodySession, GivesTheLogProbabilitiesOfTheFullForwardPass) {
  for (const auto& [name, fields] : TrialBodies()) {
    const testing::ScopedTrace trace(__FILE__, __LINE__, name);
    ExpectStepsOfTheFullPass(ListedModel(fields));
  }
}

// Layers with the same parameters have caches of their own.
TEST(HybridSession, GivesTheLogProbabilitiesOfTheFullForwardPass) {
  const auto mixer = [](const char* name) { return "mixer { " + TrialMixers().at(name) + " } "; };
  ExpectStepsOfTheFullPass(
      ListedModel(std::string(kUntied) + " decoder { layers { repeat: 2 weights: 'shared' " +
                  mixer("dot") + "} layers { " + mixer("random") + "} layers { weights: 'shared' " +
                  mixer("dot") + "} layers { " + mixer("dense_and_dot") + "} }"));
}

TEST(GreedyDecoding, StopsAtTheEndIdRowByRow) {
  DecodingTrial trial(TinyModel("", kUntied));
  const TrialBatch batch = Batch();
  const auto full = Greedy(trial, batch, DType::kF32, kNoEnd);
  const int32_t end = full[1][5];
  const auto cut = Greedy(trial, batch, DType::kF32, end);
  for (int64_t row = 0; row < kRows; ++row) {
    EXPECT_EQ(cut[row], Ids(full[row].begin(), std::ranges::find(full[row], end)));
  }
}

TEST(GreedyDecoding, AddsUpLogProbabilitiesWhereItIsAsked) {
  DecodingTrial trial(TinyModel("", kUntied));
  TrialBatch batch = Batch();
  DecodeSession session(trial.Trained(), ShapeOf(batch), NextTokens::kBestWithLogProbability);
  // Row 1 ends before its fifth token, which counts, too.
  const auto fifth = [](int64_t row, auto prefix, int32_t) {
    return row == 1 && prefix.size() == 4;
  };
  const Hypotheses outputs = Greedy(session, batch, fifth);
  const auto full_outputs = Greedy(trial, batch, DType::kF32, kNoEnd);
  ReadOutputs(full_outputs, batch);
  const auto full = trial.LogProbabilities(batch);
  for (int64_t row = 0; row < kRows; ++row) {
    double expected = 0;
    for (int64_t t = 0; t < (row == 1 ? 5 : kOutputs); ++t) {
      expected += full[row * kOutputs + t][full_outputs[row][t]];
    }
    EXPECT_NEAR(outputs[row].log_probability, expected, 1e-4);
    EXPECT_EQ(outputs[row].score, outputs[row].log_probability);
  }
}

TEST(GreedyDecoding, StopsAtTheLongestOutput) {
  DecodingTrial trial(TinyModel("", kUntied));
  const auto full = Greedy(trial, Batch(), DType::kF32, kNoEnd);
  const auto shorter = Greedy(trial, Batch(), DType::kF32, kNoEnd, 4);
  for (int64_t row = 0; row < kRows; ++row) {
    EXPECT_EQ(shorter[row], Ids(full[row].begin(), full[row].begin() + 4));
  }
}

TEST(GreedyDecoding, ForgetsTheInputsBefore) {
  for (const char* mixer : {"random_and_dot", "light_conv", "gated_mlp", "local_attention",
                            "sinkhorn", "retention", "hyena"}) {
    DecodingTrial trial(TinyModel(TrialMixers().at(mixer), kUntied));
    const TrialBatch batch = Batch();
    TrialBatch other = Batch();
    std::ranges::reverse(other.encoder_ids);
    DecodeSession session(trial.Trained(), ShapeOf(batch), NextTokens::kBest);
    const auto endless = [](auto, auto, auto) { return false; };
    const Hypotheses first = Greedy(session, batch, endless);
    EXPECT_NE(Greedy(session, other, endless), first);
    EXPECT_EQ(Greedy(session, batch, endless), first);
  }
}

// As the other strategies say it, whether or not log-probabilities are asked for.
TEST(GreedyDecoding, LogitsThatAreNotFiniteAreAnError) {
  for (const NextTokens next : {NextTokens::kBest, NextTokens::kBestWithLogProbability}) {
    DecodingTrial trial(TinyModel("", kUntied));
    const TrialBatch batch = Batch();
    DecodeSession session(trial.Trained(), ShapeOf(batch), next);
    const auto decode = [&](bool ends) {
      return Greedy(session, batch, [ends](auto, auto, auto) { return ends; });
    };
    EXPECT_EQ(decode(true).size(), static_cast<size_t>(kRows));
    const Parameter& table = trial.parameters.Get("output_embedding");
    std::vector<double> values = trial.memory.ParameterValues(table);
    values[5] = NAN;  // of token 0
    trial.memory.SetParameter(table, values);
    const std::string error = ErrorOf([&] { decode(false); }, ExitCode::kCheckpoint);
    EXPECT_NE(error.find("parameters are damaged"), std::string::npos) << error;
  }
}

TEST(GreedyDecoding, UsesTheDecodersOwnMixerAndOutputTable) {
  DecodingTrial trial(TinyModel(
      TrialMixers().at("dense"),
      "tied_embeddings: false decoder_mixer { " + TrialMixers().at("factorized_random") + " }"));
  EXPECT_EQ(Greedy(trial, Batch(), DType::kF32, kNoEnd).size(), static_cast<size_t>(kRows));
}

// An error elsewhere may end a session after any call. What it has enqueued must not run on memory
// that is gone.
TEST(SessionErrors, MayEndWithWorkUnderway) {
  DecodingTrial trial(TinyModel("", kUntied));
  const TrialBatch batch = Batch(1);
  for (const int calls : {1, 2, 3}) {
    {
      DecodeSession session(trial.Trained(), ShapeOf(batch, 2), NextTokens::kLogits);
      session.Start(batch.encoder_ids, batch.encoder_segments);
      if (calls >= 2) session.Append(Ids{0, 0});
      if (calls >= 3) session.TakePrefixes(Ids{1, 1});
    }
    FastBackend().device().Wait();
  }
}

TEST(SessionErrors, RefusesWhatItCannotDecode) {
  DecodingTrial by_position(
      TinyModel("attention { heads: 2 head_size: 8 index_by: SEGMENT_POSITION term { random { "
                "max_length: 16 } } }"));
  EXPECT_THROW(Greedy(by_position, Batch(), DType::kF32, kNoEnd), Error);
  DecodingTrial random(TinyModel(TrialMixers().at("random")));
  const std::string error =
      ErrorOf([&] { Greedy(random, Batch(), DType::kF32, kNoEnd, 17); }, ExitCode::kConfig);
  EXPECT_NE(error.find("16 positions"), std::string::npos);
  EXPECT_NE(error.find("have 17"), std::string::npos);
}

}  // namespace
}  // namespace syntra
