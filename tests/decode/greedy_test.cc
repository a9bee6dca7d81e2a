// SPDX-License-Identifier: Apache-2.0
// Compares greedy decoding with the arg max of the full forward pass over the same prefix.
#include "decode/greedy.h"

#include <gtest/gtest.h>

#include <set>

#include "kernels/tested.h"
#include "model/model_trial.h"
#include "program/numbers.h"

namespace syntra {
namespace {

constexpr int64_t kRows = 3, kInputs = 9, kOutputs = 12, kVocabulary = 32;
constexpr int32_t kNoEnd = -1;
const auto kEndless = [](int64_t, int32_t) { return false; };

// Parameters large enough for outputs that vary.
constexpr double kSharpness = 3;
const std::string kUntied = "tied_embeddings: false";

struct Decoding {
  explicit Decoding(const ModelConfig& config)
      : model(config), parameters(DeclareParameters(model)), memory(parameters, FastBackend()) {
    FillParameters(parameters, memory, kSharpness);
  }

  std::vector<std::vector<int32_t>> Greedy(const TrialBatch& batch, DType activations,
                                           int32_t end_id, int64_t max_length = kOutputs) {
    GreedyDecoder decoder(model, parameters, memory.arenas().parameters, activations,
                          {batch.shape.rows, batch.shape.input_length, max_length}, FastBackend());
    return decoder.Decode(batch.encoder_ids, batch.encoder_segments,
                          [end_id](int64_t, int32_t id) { return id == end_id; });
  }

  EncoderDecoder model;
  ParameterStore parameters;
  ArenaMemory memory;
};

// One example padded at the end.
TrialBatch Batch(int64_t rows = kRows) {
  TrialBatch batch = RandomBatch({rows, kInputs, kOutputs}, kVocabulary);
  for (int64_t i = kInputs - 3; i < kInputs; ++i) batch.encoder_segments[i] = 0;
  return batch;
}

class Greedy : public testing::TestWithParam<std::pair<const std::string, std::string>> {};

TEST_P(Greedy, TakesTheArgMaxOfTheFullForwardPass) {
  Decoding decoding(TinyModel(GetParam().second, kUntied));
  for (const DType activations : {DType::kF32, DType::kBF16}) {
    TrialBatch batch = Batch();
    const auto outputs = decoding.Greedy(batch, activations, kNoEnd);
    std::set<int32_t> distinct;
    for (int64_t row = 0; row < kRows; ++row) {
      ASSERT_EQ(outputs[row].size(), static_cast<size_t>(kOutputs));
      distinct.insert(outputs[row].begin(), outputs[row].end());
      batch.decoder_ids[row * kOutputs] = 0;
      std::copy(outputs[row].begin(), outputs[row].end() - 1,
                batch.decoder_ids.begin() + row * kOutputs + 1);
    }
    EXPECT_GT(distinct.size(), 2u) << "the outputs hardly depend on anything";
    Executable forward(LogitsProgram(decoding.model, decoding.parameters, activations, batch.shape),
                       FastBackend(), decoding.memory.arenas());
    SetBatch(batch, forward);
    forward.Run();
    const std::vector<double> logits = Numbers(forward.Tensor("logits"));
    // The two passes round differently: a choice must be within this of the best logit.
    const double slack = activations == DType::kF32 ? 1e-5 : 0.08;
    for (int64_t row = 0; row < kRows; ++row) {
      for (int64_t t = 0; t < kOutputs; ++t) {
        const auto scores = logits.begin() + (row * kOutputs + t) * kVocabulary;
        const double best = *std::max_element(scores, scores + kVocabulary);
        EXPECT_GE(scores[outputs[row][t]], best - slack * (1 + std::abs(best)))
            << "row " << row << ", position " << t;
      }
    }
  }
}

TEST_P(Greedy, RowsAreIndependent) {
  Decoding decoding(TinyModel(GetParam().second, kUntied));
  const TrialBatch batch = Batch();
  const auto together = decoding.Greedy(batch, DType::kF32, kNoEnd);
  for (int64_t row = 0; row < kRows; ++row) {
    TrialBatch alone = Batch(1);
    std::copy_n(batch.encoder_ids.begin() + row * kInputs, kInputs, alone.encoder_ids.begin());
    std::copy_n(batch.encoder_segments.begin() + row * kInputs, kInputs,
                alone.encoder_segments.begin());
    EXPECT_EQ(decoding.Greedy(alone, DType::kF32, kNoEnd)[0], together[row]);
  }
}

INSTANTIATE_TEST_SUITE_P(Mixers, Greedy, testing::ValuesIn(TrialMixers()),
                         [](const auto& info) { return info.param.first; });

TEST(GreedyDecoder, StopsAtTheEndIdRowByRow) {
  Decoding decoding(TinyModel("", kUntied));
  const TrialBatch batch = Batch();
  const auto full = decoding.Greedy(batch, DType::kF32, kNoEnd);
  const int32_t end = full[1][5];
  const auto cut = decoding.Greedy(batch, DType::kF32, end);
  for (int64_t row = 0; row < kRows; ++row) {
    const auto stop = std::ranges::find(full[row], end);
    EXPECT_EQ(cut[row], std::vector<int32_t>(full[row].begin(), stop));
  }
}

// The tokens that are requested row by row: each one once, none after the end.
TEST(GreedyDecoder, AsksOnceForEachToken) {
  Decoding decoding(TinyModel("", kUntied));
  const TrialBatch batch = Batch();
  const auto full = decoding.Greedy(batch, DType::kF32, kNoEnd);
  GreedyDecoder decoder(decoding.model, decoding.parameters, decoding.memory.arenas().parameters,
                        DType::kF32, {kRows, kInputs, kOutputs}, FastBackend());
  std::vector<std::vector<int32_t>> asked(kRows);
  const auto outputs =
      decoder.Decode(batch.encoder_ids, batch.encoder_segments, [&](int64_t row, int32_t id) {
        asked[row].push_back(id);
        return asked[row].size() > static_cast<size_t>(2 * row);
      });
  for (int64_t row = 0; row < kRows; ++row) {
    EXPECT_EQ(asked[row], std::vector(full[row].begin(), full[row].begin() + 2 * row + 1));
    EXPECT_EQ(outputs[row], std::vector(full[row].begin(), full[row].begin() + 2 * row));
  }
}

TEST(GreedyDecoder, StopsAtTheLongestOutput) {
  Decoding decoding(TinyModel("", kUntied));
  const auto full = decoding.Greedy(Batch(), DType::kF32, kNoEnd);
  const auto shorter = decoding.Greedy(Batch(), DType::kF32, kNoEnd, 4);
  for (int64_t row = 0; row < kRows; ++row) {
    EXPECT_EQ(shorter[row], std::vector<int32_t>(full[row].begin(), full[row].begin() + 4));
  }
}

TEST(GreedyDecoder, ForgetsTheCallBefore) {
  Decoding decoding(TinyModel(TrialMixers().at("random_and_dot"), kUntied));
  const TrialBatch batch = Batch();
  TrialBatch other = Batch();
  std::ranges::reverse(other.encoder_ids);
  GreedyDecoder decoder(decoding.model, decoding.parameters, decoding.memory.arenas().parameters,
                        DType::kF32, {kRows, kInputs, kOutputs}, FastBackend());
  const auto decode = [&](const TrialBatch& b) {
    return decoder.Decode(b.encoder_ids, b.encoder_segments, kEndless);
  };
  const auto first = decode(batch);
  EXPECT_NE(decode(other), first);
  EXPECT_EQ(decode(batch), first);
}

TEST(GreedyDecoder, UsesTheDecodersOwnMixerAndOutputTable) {
  Decoding decoding(TinyModel(
      TrialMixers().at("dense"),
      "tied_embeddings: false decoder_mixer { " + TrialMixers().at("factorized_random") + " }"));
  EXPECT_EQ(decoding.Greedy(Batch(), DType::kF32, kNoEnd).size(), static_cast<size_t>(kRows));
}

TEST(GreedyDecoder, RefusesWhatItCannotDecode) {
  Decoding by_position(
      TinyModel("attention { heads: 2 head_size: 8 index_by: SEGMENT_POSITION term { random { "
                "max_length: 16 } } }"));
  EXPECT_THROW(by_position.Greedy(Batch(), DType::kF32, kNoEnd), Error);
  Decoding random(TinyModel(TrialMixers().at("random")));
  try {
    random.Greedy(Batch(), DType::kF32, kNoEnd, 17);
    FAIL() << "decoded past the tables";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kConfig);
    EXPECT_NE(std::string(error.what()).find("16 positions"), std::string::npos);
    EXPECT_NE(std::string(error.what()).find("have 17"), std::string::npos);
  }
}

}  // namespace
}  // namespace syntra
