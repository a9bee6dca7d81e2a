// SPDX-License-Identifier: Apache-2.0
// The mixers of configs/paper in small models: n-best outputs and the ranking of labels against the
// full forward pass, which has no caches.
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "base/file.h"
#include "decode/decoding_trial.h"
#include "decode/scorer.h"

namespace syntra {
namespace {

constexpr int64_t kInputs = 3, kInputLength = 7, kLength = 8, kVocabulary = 32;
constexpr int32_t kEos = 1;

using Ids = std::vector<int32_t>;

// Of the Transformer and the Synthesizers in the paper's C4 table.
std::vector<std::string> PaperConfigs() {
  std::vector<std::string> names;
  for (const Path& path : ListDirectory(Path(SYNTRA_SOURCE_DIR) / "configs/paper")) {
    const std::string name = path.stem();
    const bool is_attention = name.starts_with("c4_syn_") || name == "c4_transformer";
    if (is_attention && path.extension() == ".textproto") names.push_back(name);
  }
  return names;
}

// The mixer of the configuration in the sizes of a TinyModel.
ModelConfig Small(const std::string& name) {
  Config config;
  const std::string text =
      ReadWholeFile(Path(SYNTRA_SOURCE_DIR) / "configs/paper" / (name + ".textproto"));
  SYNTRA_CHECK(google::protobuf::TextFormat::ParseFromString(text, &config), "{}", name);
  ModelConfig small = TinyModel("", kUntied);
  *small.mutable_mixer() = config.model().mixer();
  small.mutable_mixer()->mutable_attention()->set_heads(2);
  small.mutable_mixer()->mutable_attention()->set_head_size(8);
  return small;
}

class Paper : public testing::TestWithParam<std::string> {
 protected:
  Paper() : trial_(Small(GetParam())), batch_(RandomBatch({kInputs, kInputLength, kLength}, 32)) {
    batch_.encoder_segments[2 * kInputLength - 1] = 0;
    batch_.encoder_segments[2 * kInputLength - 2] = 0;
  }

  // log p of each of an input's targets, by one pass over all of them.
  std::vector<double> ByFullPass(int64_t input, const std::vector<Ids>& targets) {
    const auto count = static_cast<int64_t>(targets.size());
    TrialBatch rows = RandomBatch({count, kInputLength, kLength}, kVocabulary);
    for (int64_t row = 0; row < count; ++row) {
      std::copy_n(batch_.encoder_ids.begin() + input * kInputLength, kInputLength,
                  rows.encoder_ids.begin() + row * kInputLength);
      std::copy_n(batch_.encoder_segments.begin() + input * kInputLength, kInputLength,
                  rows.encoder_segments.begin() + row * kInputLength);
      const auto begin = rows.decoder_ids.begin() + row * kLength;
      std::fill_n(begin, kLength, 0);
      std::copy(targets[row].begin(), targets[row].end() - 1, begin + 1);
    }
    const auto full = trial_.LogProbabilities(rows);
    std::vector<double> sums(count);
    for (int64_t row = 0; row < count; ++row) {
      for (size_t t = 0; t < targets[row].size(); ++t) {
        sums[row] += full[row * kLength + static_cast<int64_t>(t)][targets[row][t]];
      }
    }
    return sums;
  }

  DecodingTrial trial_;
  TrialBatch batch_;
};

TEST_P(Paper, EachOfTheNBestHasTheProbabilityOfTheFullPass) {
  const auto strategy = MakeStrategy(DecodingOf("beam { size: 4 } outputs: 4"));
  DecodeSession session(trial_.Trained(), {kInputs, 4, kInputLength, kLength},
                        strategy->next_tokens());
  session.Start(batch_.encoder_ids, batch_.encoder_segments);
  // Many tokens end an output, so that all four end.
  const auto ends = [](auto, auto, int32_t id) { return id % 4 == kEos; };
  const auto outputs = strategy->Decode(session, {.inputs = kInputs, .ends = ends, .digests = {}});
  std::set<Ids> distinct;
  for (int64_t input = 0; input < kInputs; ++input) {
    ASSERT_EQ(outputs[input].size(), 4u);
    for (const Hypothesis& output : outputs[input]) {
      ASSERT_LT(output.ids.size(), static_cast<size_t>(kLength));
      distinct.insert(output.ids);
      // The output does not say which token ended it: one of those that may.
      std::vector<Ids> targets;
      for (int32_t id = kEos; id < kVocabulary; id += 4) {
        targets.push_back(output.ids);
        targets.back().push_back(id);
      }
      double nearest = INFINITY;
      for (const double sum : ByFullPass(input, targets)) {
        nearest = std::min(nearest, std::abs(sum - output.log_probability));
      }
      EXPECT_LE(nearest, 1e-5 * (1 + std::abs(output.log_probability)));
    }
  }
  EXPECT_GT(distinct.size(), 4u) << "the outputs hardly depend on anything";
}

TEST_P(Paper, GreedyTokensAreTheBestOfTheFullPass) {
  const auto strategy = MakeStrategy({});
  DecodeSession session(trial_.Trained(), {kInputs, 1, kInputLength, kLength}, NextTokens::kBest);
  session.Start(batch_.encoder_ids, batch_.encoder_segments);
  const auto endless = [](auto, auto, auto) { return false; };
  const auto outputs =
      strategy->Decode(session, {.inputs = kInputs, .ends = endless, .digests = {}});
  for (int64_t input = 0; input < kInputs; ++input) {
    const Ids& ids = outputs[input].front().ids;
    ASSERT_EQ(ids.size(), static_cast<size_t>(kLength));
    for (size_t t = 0; t < ids.size(); ++t) {
      std::vector<Ids> targets(kVocabulary, Ids(ids.begin(), ids.begin() + t + 1));
      for (int32_t id = 0; id < kVocabulary; ++id) targets[id].back() = id;
      EXPECT_EQ(MostProbable(ByFullPass(input, targets)), static_cast<size_t>(ids[t])) << t;
    }
  }
}

TEST_P(Paper, LabelsRankAsByTheFullPass) {
  const std::vector<Ids> labels = {{5, kEos}, {9, 4, kEos}, {22, 7, 30, kEos}, {kEos}};
  std::vector<ScoreRequest> requests;
  for (int64_t input = 0; input < kInputs; ++input) {
    const auto begin = batch_.encoder_ids.begin() + input * kInputLength;
    const auto length = std::count(batch_.encoder_segments.begin() + input * kInputLength,
                                   batch_.encoder_segments.begin() + (input + 1) * kInputLength, 1);
    requests.push_back({Ids(begin, begin + length), labels});
  }
  const auto scores =
      Scorer(trial_.Trained(), {.input_length = kInputLength, .output_length = kLength})
          .Score(requests);
  for (int64_t input = 0; input < kInputs; ++input) {
    const std::vector<double> expected = ByFullPass(input, labels);
    for (size_t k = 0; k < labels.size(); ++k) {
      EXPECT_NEAR(scores[input][k], expected[k], 1e-5 * (1 + std::abs(expected[k])));
    }
    EXPECT_EQ(MostProbable(scores[input]), MostProbable(expected));
  }
}

INSTANTIATE_TEST_SUITE_P(Configs, Paper, testing::ValuesIn(PaperConfigs()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace syntra
