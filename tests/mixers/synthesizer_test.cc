// SPDX-License-Identifier: Apache-2.0
// Special cases that follow from the formulas of the Synthesizer (Tay et al. 2021).
#include <gtest/gtest.h>

#include <google/protobuf/text_format.h>

#include "kernels/tested.h"
#include "mixers/mixer_cases.h"
#include "mixers/mixer_trial.h"
#include "program/numbers.h"

namespace syntra {
namespace {

constexpr int64_t kHeads = 3, kInner = 12;

MixerConfig Parse(const std::string& terms) {
  return ConfigOf({"", "attention { heads: 3 head_size: 4 relative_bias: false " + terms + " }"});
}

const std::string kDot = "term { dot_product {} } ";
const std::string kRandom = "term { random { max_length: 9 } } ";
const std::string kDense = "term { dense { max_length: 9 } } ";

std::vector<float> Zeros(int64_t count) { return std::vector<float>(count); }

// y_i = (mean of v_j over the keys that i may read) W_o, in double.
std::vector<double> MeanPooling(const MixerSetting& setting) {
  MixerTrial trial(setting, ReferenceBackend());
  const std::vector<double> value = trial.memory().ParameterValues(trial.parameters().Get("value"));
  const std::vector<double> output =
      trial.memory().ParameterValues(trial.parameters().Get("output"));
  const int64_t length = setting.length;
  std::vector<double> y(setting.batch * length * kTrialWidth);
  for (int64_t b = 0; b < setting.batch; ++b) {
    for (int64_t i = 0; i < length; ++i) {
      const int64_t row = b * length + i;
      std::vector<double> mean(kInner);
      double keys = 0;
      for (int64_t j = 0; j < length; ++j) {
        if (setting.causal && j > i) continue;
        if (setting.segments[b * length + j] != setting.segments[row]) continue;
        ++keys;
        for (int64_t d = 0; d < kTrialWidth; ++d) {
          const double x = setting.x[(b * length + j) * kTrialWidth + d];
          for (int64_t k = 0; k < kInner; ++k) mean[k] += x * value[d * kInner + k];
        }
      }
      for (int64_t k = 0; k < kInner; ++k) {
        for (int64_t d = 0; d < kTrialWidth; ++d) {
          y[row * kTrialWidth + d] += mean[k] / keys * output[k * kTrialWidth + d];
        }
      }
    }
  }
  return y;
}

class EqualScores : public testing::TestWithParam<std::pair<std::string, std::string>> {};

TEST_P(EqualScores, AreMeanPoolingOverTheAllowedKeys) {
  const auto& [terms, table] = GetParam();
  for (const bool causal : {false, true}) {
    for (Backend& backend : Backends()) {
      MixerSetting setting{.config = Parse(terms), .causal = causal};
      setting.x = RandomRows(2, 7);
      setting.segments = {1, 1, 1, 2, 2, 2, 2, 1, 1, 1, 1, 1, 1, 3};
      const MixerTrial shapes(setting, backend);
      setting.values[table] = Zeros(shapes.parameters().Get(table).shape.size());
      EXPECT_LT(LargestError(OutputOf(setting, backend), MeanPooling(setting)),
                IsReference(backend) ? 1e-12 : 2e-6);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Synthesizer, EqualScores,
    testing::Values(std::pair(kRandom, "random/table"), std::pair(kDense, "dense/positions"),
                    std::pair("term { factorized_random { max_length: 9 } }",
                              "factorized_random/key"),
                    std::pair("term { factorized_dense { a: 3 b: 3 } }", "factorized_dense/a")));

MixerSetting Causal(const std::string& terms) { return {.config = Parse(terms), .causal = true}; }

TEST(Synthesizer, AClosedSigmoidGateLeavesOneTerm) {
  const std::vector<double> dot = OutputOf(Causal(kDot)), random = OutputOf(Causal(kRandom));
  MixerSetting mixed = Causal(kDot + kRandom + "gate: SIGMOID");
  mixed.values["gate"] = {-50};
  EXPECT_LT(LargestError(OutputOf(mixed), dot), 1e-12);
  mixed.values["gate"] = {50};
  EXPECT_LT(LargestError(OutputOf(mixed), random), 1e-12);
}

TEST(Synthesizer, ASoftmaxGateOnOneTermLeavesThatTerm) {
  MixerSetting mixed = Causal(kDot + kRandom + kDense + "gate: SOFTMAX");
  mixed.values["gate"] = {-50, 50, -50};
  EXPECT_LT(LargestError(OutputOf(mixed), OutputOf(Causal(kRandom))), 1e-12);
}

TEST(Synthesizer, EqualGatesAreAFractionOfTheSum) {
  // Halving both terms of a sum is what the gates do at the start.
  MixerSetting gated = Causal(kDot + kRandom + "gate: SIGMOID"),
               softmax = Causal(kDot + kRandom + "gate: SOFTMAX");
  gated.values["gate"] = {0};
  softmax.values["gate"] = {1.5, 1.5};
  MixerSetting sum = Causal(kDot + kRandom);
  MixerTrial trial(sum, ReferenceBackend());
  for (const char* name : {"query", "random/table"}) {
    std::vector<float> halved = TrialValues(sum, trial.parameters().Get(name));
    for (float& value : halved) value /= 2;
    sum.values[name] = halved;
  }
  EXPECT_LT(LargestError(OutputOf(gated), OutputOf(sum)), 1e-7);
  EXPECT_LT(LargestError(OutputOf(softmax), OutputOf(sum)), 1e-7);
}

TEST(Synthesizer, FactorizedRandomOfFullRankIsAnyTable) {
  MixerSetting random = Causal(kRandom);
  MixerSetting factorized = Causal("term { factorized_random { max_length: 9 rank: 9 } }");
  MixerTrial trial(random, ReferenceBackend());
  factorized.values["factorized_random/query"] =
      TrialValues(random, trial.parameters().Get("random/table"));
  std::vector<float> identity = Zeros(kHeads * 81);
  for (int64_t h = 0; h < kHeads; ++h) {
    for (int64_t i = 0; i < 9; ++i) identity[h * 81 + i * 10] = 1;
  }
  factorized.values["factorized_random/key"] = identity;
  EXPECT_LT(LargestError(OutputOf(factorized), OutputOf(random)), 1e-12);
}

TEST(Synthesizer, BroadcastFactorsScoreKeysAlikeForEveryQuery) {
  MixerSetting setting{
      .config = Parse("term { factorized_random { max_length: 9 broadcast_over_queries: true } }")};
  const std::vector<double> y = OutputOf(setting);
  for (int64_t i = 1; i < setting.length; ++i) {
    for (int64_t d = 0; d < kTrialWidth; ++d) {
      EXPECT_NEAR(y[i * kTrialWidth + d], y[d], 1e-12);
    }
  }
}

TEST(Synthesizer, AShorterInputUsesTheTopLeftBlockOfTheTable) {
  MixerSetting large = Causal(kRandom), small = Causal("term { random { max_length: 7 } }");
  MixerTrial trial(large, ReferenceBackend());
  const std::vector<float> table = TrialValues(large, trial.parameters().Get("random/table"));
  std::vector<float> block;
  for (int64_t row = 0; row < kHeads * 9; ++row) {
    if (row % 9 < 7) block.insert(block.end(), &table[row * 9], &table[row * 9] + 7);
  }
  small.values["random/table"] = block;
  EXPECT_EQ(OutputOf(small), OutputOf(large));
  EXPECT_EQ(OutputOf(small, FastBackend()), OutputOf(large, FastBackend()));
}

// C[j] = A[j mod a] B[j div a]: all a * b scores can differ (tile and repeat, not two tiles).
TEST(Synthesizer, FactorizedDenseIsAnOuterProduct) {
  MixerSetting factorized = Causal("term { factorized_dense { a: 3 b: 3 bias: true } }"),
               random = Causal(kRandom);
  factorized.values["factorized_dense/a"] = Zeros(4 * 3);
  factorized.values["factorized_dense/b"] = Zeros(4 * 3);
  const std::vector<float> a = {1, -2, 0.5}, b = {0.25, 1.5, -1};
  std::vector<float> a_heads, b_heads, table;
  for (int64_t h = 0; h < kHeads; ++h) {
    a_heads.insert(a_heads.end(), a.begin(), a.end());
    b_heads.insert(b_heads.end(), b.begin(), b.end());
    for (int64_t i = 0; i < 9; ++i) {
      for (int64_t j = 0; j < 9; ++j) table.push_back(a[j % 3] * b[j / 3]);
    }
  }
  factorized.values["factorized_dense/a_bias"] = a_heads;
  factorized.values["factorized_dense/b_bias"] = b_heads;
  random.values["random/table"] = table;
  EXPECT_LT(LargestError(OutputOf(factorized), OutputOf(random)), 1e-12);
}

TEST(Synthesizer, FixedRandomHasNoGradient) {
  MixerTrial trial(Causal("term { random { max_length: 9 trainable: false } }"), FastBackend());
  trial.Run();
  EXPECT_FALSE(trial.Gradients().contains("random/table"));
  EXPECT_EQ(Norm(trial.memory().Gradient(trial.parameters().Get("random/table"))), 0);
}

TEST(Synthesizer, TwoRandomTermsAreTheSumOfTheirTables) {
  MixerSetting two = Causal(kRandom + "term { name: \"other\" random { max_length: 9 } } "),
               one = Causal(kRandom);
  MixerTrial trial(two, ReferenceBackend());
  std::vector<float> sum = TrialValues(two, trial.parameters().Get("random/table"));
  const std::vector<float> other = TrialValues(two, trial.parameters().Get("other/table"));
  for (size_t i = 0; i < sum.size(); ++i) sum[i] += other[i];
  one.values["random/table"] = sum;
  EXPECT_LT(LargestError(OutputOf(two), OutputOf(one)), 1e-6);
}

TEST(AttentionDropout, DropsWholeKeysOfAHeadAndKeepsTheMean) {
  // The noise is of V_j,h: with every score equal, the mean over many examples stays the mean.
  MixerConfig config = Parse(kRandom);
  config.mutable_attention()->set_dropout(0.5);
  const auto mixer = MakeMixer(config);
  constexpr int64_t kRows = 512, kLength = 4;
  ParameterStore parameters;
  ProgramBuilder builder;
  Recording recording{.program = builder,
                      .parameters = parameters,
                      .declares = &parameters,
                      .training = true,
                      .dropout_keys = builder.Input("keys", {DType::kI32, {kRows, 2}})};
  const Scope root(recording);
  const Value x = builder.FillConstant({DType::kF32, {kRows, kLength, kTrialWidth}}, 1);
  builder.Output("y", mixer->Build(root, {.x = x}));
  ArenaMemory memory(parameters, FastBackend());
  for (const Parameter& parameter : parameters.all()) {
    if (parameter.name == "random/table") continue;  // zeros
    memory.SetParameter(parameter, std::vector<float>(parameter.shape.size(), 0.1f));
  }
  Executable executable(std::move(builder).Build(), FastBackend(), memory.arenas());
  std::vector<int32_t> keys;
  for (int32_t row = 0; row < kRows; ++row) {
    keys.push_back(row);
    keys.push_back(77);
  }
  executable.SetInput("keys", std::span<const int32_t>(keys));
  executable.Run();
  const std::vector<double> y = Numbers(executable.Tensor("y"));
  double mean = 0;
  for (const double value : y) mean += value / static_cast<double>(y.size());
  // Without dropout: v = 10 * 0.1 = 1 everywhere, y = 12 * 0.1 = 1.2. Dropping whole heads of a
  // position leaves sums of kHeads * kLength draws of 0 or 2.
  EXPECT_NEAR(mean, 1.2, 0.03);
  for (const double value : y) {
    const double draws = value / (1.2 * 2) * kHeads * kLength;
    EXPECT_NEAR(draws, std::round(draws), 1e-4);
  }
}

}  // namespace
}  // namespace syntra
