// SPDX-License-Identifier: Apache-2.0
// Strategies on the backend under test against those on the CPU.
#include <gtest/gtest.h>

#include "decode/decoding_trial.h"

namespace syntra {
namespace {

constexpr int64_t kInputs = 3, kInputLength = 5, kMaxLength = 6;
constexpr int32_t kEnd = 11;

std::vector<Hypotheses> DecodeOn(Backend& backend, const std::string& mixer, DType activations,
                                 const std::string& decoding) {
  DecodingTrial trial(TinyModel(mixer, kUntied), 3, backend);
  TrialBatch batch = RandomBatch({kInputs, kInputLength, kMaxLength}, 32);
  batch.encoder_segments[kInputLength - 1] = 0;
  const auto strategy = MakeStrategy(DecodingOf(decoding));
  NextTokens next = strategy->next_tokens();
  if (next == NextTokens::kBest) next = NextTokens::kBestWithLogProbability;
  DecodeSession session(trial.Trained(activations),
                        {kInputs, strategy->rows_per_input(), kInputLength, kMaxLength}, next);
  session.Start(batch.encoder_ids, batch.encoder_segments);
  // The last input only fills the shape.
  return strategy->Decode(session, {.inputs = kInputs - 1,
                                    .ends = [](auto, auto, int32_t id) { return id == kEnd; },
                                    .digests = {1, 2}});
}

class EveryStrategy : public testing::TestWithParam<std::string> {};

TEST_P(EveryStrategy, GivesTheOutputsOfTheCpu) {
  for (const char* mixer : {"random_and_dot", "dense"}) {
    const std::string& config = TrialMixers().at(mixer);
    const auto expected = DecodeOn(CpuBackend(), config, DType::kF32, GetParam());
    const auto outputs = DecodeOn(FastBackend(), config, DType::kF32, GetParam());
    ASSERT_EQ(outputs.size(), expected.size());
    for (size_t i = 0; i < outputs.size(); ++i) {
      ASSERT_EQ(outputs[i].size(), expected[i].size()) << mixer << ", input " << i;
      for (size_t k = 0; k < outputs[i].size(); ++k) {
        EXPECT_EQ(outputs[i][k].ids, expected[i][k].ids) << mixer << ", input " << i;
        EXPECT_NEAR(outputs[i][k].log_probability, expected[i][k].log_probability, 1e-4);
        EXPECT_NEAR(outputs[i][k].score, expected[i][k].score, 1e-4);
      }
    }
  }
}

// In bf16 the two round differently, and outputs may differ where tokens are about as probable.
TEST_P(EveryStrategy, DecodesInBFloat16) {
  const auto outputs =
      DecodeOn(FastBackend(), TrialMixers().at("random_and_dot"), DType::kBF16, GetParam());
  ASSERT_EQ(outputs.size(), 2u);
  for (const Hypotheses& of_input : outputs) {
    ASSERT_FALSE(of_input.empty());
    for (const Hypothesis& output : of_input) EXPECT_LT(output.log_probability, 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Decoding, EveryStrategy, testing::ValuesIn(TrialDecodings()));

}  // namespace
}  // namespace syntra
