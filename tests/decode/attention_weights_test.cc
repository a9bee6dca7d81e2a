// SPDX-License-Identifier: Apache-2.0
#include "decode/attention_weights.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "decode/decoding_trial.h"
#include "tests/base/error_of.h"

namespace syntra {
namespace {

constexpr int64_t kRows = 2, kInputs = 7, kTargets = 6;

// Full rows, but for two inputs of padding at the end of the last row.
Batch TwoRows() {
  const TrialBatch ids = RandomBatch({kRows, kInputs, kTargets}, 32);
  Batch batch(kRows, kInputs, kTargets);
  batch["encoder_ids"] = ids.encoder_ids;
  batch["decoder_ids"] = ids.decoder_ids;
  batch["encoder_segments"] = ids.encoder_segments;
  batch["decoder_segments"] = ids.decoder_segments;
  std::fill_n(batch["encoder_segments"].end() - 2, 2, 0);
  for (const auto& [name, length] :
       {std::pair{"encoder_positions", kInputs}, std::pair{"decoder_positions", kTargets}}) {
    for (int64_t i = 0; i < kRows * length; ++i) {
      batch[name][i] = static_cast<int32_t>(i % length);
    }
  }
  return batch;
}

// Calls body(row, head, query, weights) with those of every query.
template <typename Body>
void ForEachQuery(const AttentionWeights& of, const Body& body) {
  for (int64_t row = 0; row < of.rows; ++row) {
    for (int64_t head = 0; head < of.heads; ++head) {
      for (int64_t query = 0; query < of.queries; ++query) {
        body(row, head, query, of.Of(row, head, query));
      }
    }
  }
}

TEST(AttentionWeights, AddUpToOneOverWhatMayBeRead) {
  for (const auto& [name, config] : TrialModels()) {
    if (config.architecture() != ModelConfig::ENCODER_DECODER) continue;
    SCOPED_TRACE(name);
    DecodingTrial trial(config);
    for (const AttentionWeights& each : AttentionWeightsOf(trial.Trained(), TwoRows())) {
      SCOPED_TRACE(each.scope);
      const bool reads_inputs = !each.scope.starts_with("decoder") || !each.within_sequence;
      ForEachQuery(each, [&](int64_t row, int64_t, int64_t query, std::span<const float> weights) {
        const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
        EXPECT_NEAR(sum, sum == 0 ? 0 : 1, 1e-5);
        for (const float weight : weights) EXPECT_GE(weight, 0);
        if (!reads_inputs) {
          for (int64_t key = query + 1; key < each.keys; ++key) EXPECT_EQ(weights[key], 0) << key;
        } else if (row == kRows - 1 && each.keys == kInputs) {
          EXPECT_EQ(weights[kInputs - 1], 0);
          EXPECT_EQ(weights[kInputs - 2], 0);
        }
      });
    }
  }
}

TEST(AttentionWeights, OfARandomSynthesizerAreTheSoftmaxOfItsTable) {
  DecodingTrial trial(
      TinyModel("attention { heads: 2 head_size: 8 relative_bias: false term { random { "
                "max_length: 16 } } }"));
  const auto all = AttentionWeightsOf(trial.Trained(), TwoRows());
  const Parameter& table = trial.parameters.Get(all[1].scope + "/random/table");
  ASSERT_EQ(all[1].scope, "encoder/layer_01/mixer");
  const std::vector<double> scores = trial.memory.ParameterValues(table);
  ForEachQuery(all[1], [&](int64_t row, int64_t head, int64_t query, std::span<const float> w) {
    const int64_t keys = row == kRows - 1 ? kInputs - 2 : kInputs;
    if (query >= keys) return;  // padding reads nothing
    const auto line = std::span(scores).subspan((head * 16 + query) * 16, keys);
    double sum = 0;
    for (const double score : line) sum += std::exp(score);
    for (int64_t key = 0; key < keys; ++key) EXPECT_NEAR(w[key], std::exp(line[key]) / sum, 1e-6);
  });
}

TEST(AttentionWeights, StandInTheOrderOfTheForwardPass) {
  DecodingTrial trial(TinyModel());
  std::vector<std::string> scopes;
  for (const AttentionWeights& each : AttentionWeightsOf(trial.Trained(), TwoRows())) {
    scopes.push_back(each.scope);
  }
  EXPECT_EQ(scopes, (std::vector<std::string>{
                        "encoder/layer_00/mixer", "encoder/layer_01/mixer",
                        "decoder/layer_00/mixer", "decoder/layer_00/cross_attention",
                        "decoder/layer_01/mixer", "decoder/layer_01/cross_attention"}));
}

TEST(AttentionWeights, OfAModelWithoutAttention) {
  DecodingTrial trial(TinyDecoder(TrialMixers().at("light_conv")));
  Batch batch(1, 0, kTargets);
  const std::string error =
      ErrorOf([&] { AttentionWeightsOf(trial.Trained(), batch); }, ExitCode::kConfig);
  EXPECT_NE(error.find("no attention weights"), std::string::npos) << error;
}

}  // namespace
}  // namespace syntra
