// SPDX-License-Identifier: Apache-2.0
// The training programs of whole models: precision, dropout, loss, padding and packing, memory.
#include "model/programs.h"

#include <gtest/gtest.h>

#include <cmath>

#include "kernels/tested.h"
#include "model/model_trial.h"
#include "nn/layers.h"
#include "program/finite_differences.h"
#include "tests/base/error_of.h"
#include "tests/program/dump.h"

namespace syntra {
namespace {

constexpr BatchShape kShape{2, 9, 6};
constexpr int64_t kVocabulary = 32;

TrialBatch Batch() { return RandomBatch(kShape, kVocabulary); }

double Cosine(const std::vector<double>& a, const std::vector<double>& b) {
  double dot = 0;
  for (size_t i = 0; i < a.size(); ++i) dot += a[i] * b[i];
  return dot / (Norm(a) * Norm(b));
}

// The gradient of a mixture's gate is a sum over all scores, which may nearly cancel in a layer. So
// its error is measured by the largest of the model's gates.
void ExpectSameGradients(const ModelTrial& found, const ModelTrial& truth, double tolerance) {
  const auto gradients = found.Gradients(), exact = truth.Gradients();
  const auto is_gate = [](const std::string& name) { return name.ends_with("mixer/gate"); };
  double largest_gate = 0;
  for (const auto& [name, values] : exact) {
    if (is_gate(name)) largest_gate = std::max(largest_gate, LargestOf(values));
  }
  for (const auto& [name, values] : exact) {
    const double size = is_gate(name) ? largest_gate : LargestOf(values);
    EXPECT_LE(LargestDifference(gradients.at(name), values), tolerance * size) << name;
  }
}

class EveryModel : public testing::TestWithParam<std::pair<const std::string, ModelConfig>> {
 protected:
  ModelSetting Setting() const { return {.config = GetParam().second}; }
  bool tells_classes() const {
    return ArchitectureOf(GetParam().second).outputs() == Outputs::kClasses;
  }

  TrialBatch Fitted(TrialBatch batch) const { return FittedBatch(GetParam().second, batch); }
  TrialBatch Batch() const { return Fitted(RandomBatch(kShape, kVocabulary)); }
};

TEST_P(EveryModel, BackendsAgree) {
  ModelTrial reference(Setting(), Batch(), ReferenceBackend()),
      cpu(Setting(), Batch(), FastBackend());
  const double truth = reference.Run();
  EXPECT_NEAR(cpu.Run(), truth, 2e-6 * truth);
  ExpectSameGradients(cpu, reference, 1e-5);
}

TEST_P(EveryModel, BFloat16TrainsLikeFloat) {
  ModelSetting setting = Setting();
  // One ReLU whose input rounding moves over zero would turn a gradient of so few tokens.
  setting.config.mutable_feed_forward()->set_activation(FeedForwardConfig::GATED_GELU);
  ModelTrial wide(setting, Batch(), FastBackend());
  setting.activations = DType::kBF16;
  ModelTrial narrow(setting, Batch(), FastBackend());
  const double truth = wide.Run();
  EXPECT_NEAR(narrow.Run(), truth, 0.01 * truth);
  const auto found = narrow.Gradients();
  std::vector<double> all_found, all_truth;
  for (const auto& [name, exact] : wide.Gradients()) {
    all_found.insert(all_found.end(), found.at(name).begin(), found.at(name).end());
    all_truth.insert(all_truth.end(), exact.begin(), exact.end());
    if (exact.size() == 1) continue;
    if (Norm(exact) == 0) {  // drawn once for all, such as Reformer's rotation
      EXPECT_EQ(Norm(found.at(name)), 0) << name;
      continue;
    }
    EXPECT_GT(Cosine(found.at(name), exact), 0.98) << name;
  }
  EXPECT_GT(Cosine(all_found, all_truth), 0.99);
}

TEST_P(EveryModel, RecomputingGivesTheSameBitsInASmallerArena) {
  for (const DType activations : {DType::kF32, DType::kBF16}) {
    ModelSetting setting = Setting();
    setting.config.set_dropout(0.2);
    const std::vector<LayerConfig*> listed = ListedLayers(&setting.config);
    for (LayerConfig* layers : listed) layers->set_repeat(3);
    if (listed.empty()) {
      const bool encodes = HasSide(setting.config, Side::kEncoder);
      encodes ? setting.config.set_encoder_layers(3) : setting.config.set_decoder_layers(3);
    }
    setting.config.mutable_feed_forward()->set_width(256);
    setting.activations = activations;
    ModelTrial stored(setting, Batch(), FastBackend());
    const double loss = stored.Run();
    size_t bytes = stored.executable().plan().arena_bytes;
    double flops = 0;
    // Each takes less memory and more time than the one before. One of them runs with each type.
    const TrainConfig::Recompute runs =
        activations == DType::kF32 ? TrainConfig::FEED_FORWARD : TrainConfig::LAYERS;
    for (const TrainConfig::Recompute choice : {TrainConfig::FEED_FORWARD, TrainConfig::LAYERS}) {
      setting.recompute = choice;
      ModelTrial recomputed(setting, Batch(), FastBackend());
      if (choice == runs) {
        EXPECT_EQ(recomputed.Run(), loss) << choice;
        EXPECT_EQ(recomputed.Gradients(), stored.Gradients()) << choice;
      }
      const Executable& executable = recomputed.executable();
      EXPECT_LT(executable.plan().arena_bytes, bytes) << choice;
      EXPECT_GT(executable.program().recomputed_flops, flops) << choice;
      bytes = executable.plan().arena_bytes;
      flops = executable.program().recomputed_flops;
    }
  }
}

TEST(JointCrossAttention, IsOneProductOfAllDecoderLayers) {
  ModelSetting setting{.config = TinyModel()};
  setting.config.set_decoder_layers(3);
  const TrialBatch batch = RandomBatch({4, 64, 9}, kVocabulary);
  const auto products = [](ModelTrial& trial) {
    return std::ranges::count_if(
        trial.executable().program().instructions,
        [](const Instruction& each) { return each.op->name == "joint_matmul_grad"; });
  };
  ModelTrial separate(setting, batch, FastBackend());
  setting.join = ProgramBuilder::Join::kAcrossRegions;
  ModelTrial joint(setting, batch, FastBackend());
  EXPECT_EQ(products(separate) - products(joint), 2) << "one for three layers";
  const double loss = joint.Run();
  EXPECT_NEAR(loss, separate.Run(), 1e-6 * loss);
  ExpectSameGradients(joint, separate, 1e-5);
  for (const TrainConfig::Recompute choice : {TrainConfig::FEED_FORWARD, TrainConfig::LAYERS}) {
    setting.recompute = choice;
    ModelTrial recomputed(setting, batch, FastBackend());
    EXPECT_EQ(recomputed.Run(), loss) << choice;
    EXPECT_EQ(recomputed.Gradients(), joint.Gradients()) << choice;
  }
}

TEST_P(EveryModel, NothingReadsWhatIsDead) {
  for (const DType activations : {DType::kF32, DType::kBF16}) {
    for (const TrainConfig::Recompute recompute : {TrainConfig::NOTHING, TrainConfig::LAYERS}) {
      ModelSetting setting = Setting();
      setting.config.set_dropout(0.2);
      setting.activations = activations;
      setting.recompute = recompute;
      ModelTrial plain(setting, Batch(), CpuBackend());
      ModelTrial painted(setting, Batch(), CpuBackend(), TransientMemory::kPainted);
      EXPECT_EQ(plain.Run(), painted.Run());
      EXPECT_EQ(plain.Gradients(), painted.Gradients());
    }
  }
}

TEST_P(EveryModel, LiveBlocksNeverOverlap) {
  ModelTrial trial(Setting(), Batch(), FastBackend());
  const MemoryPlan& plan = trial.executable().plan();
  EXPECT_GE(plan.arena_bytes, plan.peak_bytes);
  EXPECT_LE(plan.arena_bytes, plan.peak_bytes * 3 / 2);
  for (size_t i = 0; i < plan.allocations.size(); ++i) {
    for (size_t k = 0; k < i; ++k) {
      const Allocation &a = plan.allocations[i], &b = plan.allocations[k];
      const bool together = a.first <= b.last && b.first <= a.last;
      const bool apart = a.offset + a.bytes <= b.offset || b.offset + b.bytes <= a.offset;
      EXPECT_TRUE(!together || apart) << i << " and " << k;
    }
  }
}

TEST_P(EveryModel, PaddingLeavesLossAndGradients) {
  TrialBatch padded = RandomBatch({2, 12, 8}, kVocabulary);
  TrialBatch plain = RandomBatch({2, 9, 6}, kVocabulary);
  for (int64_t row = 0; row < 2; ++row) {
    for (int64_t i = 0; i < 12; ++i) {
      if (i < 9) plain.encoder_ids[row * 9 + i] = padded.encoder_ids[row * 12 + i];
      if (i >= 9) padded.encoder_segments[row * 12 + i] = 0;
    }
    for (int64_t i = 0; i < 8; ++i) {
      if (i < 6) {
        plain.decoder_ids[row * 6 + i] = padded.decoder_ids[row * 8 + i];
        plain.targets[row * 6 + i] = padded.targets[row * 8 + i];
      } else {
        padded.decoder_segments[row * 8 + i] = padded.targets[row * 8 + i] = 0;
      }
    }
  }
  for (Backend& backend : Backends()) {
    const double tolerance = IsReference(backend) ? 1e-12 : 1e-5;
    ModelTrial with(Setting(), Fitted(padded), backend), without(Setting(), Fitted(plain), backend);
    const double loss = without.Run();
    EXPECT_NEAR(with.Run(), loss, tolerance * loss);
    ExpectSameGradients(with, without, tolerance);
    EXPECT_EQ(Numbers(with.executable().Tensor("statistics"))[2], tells_classes() ? 2 : 12);
  }
}

// Two examples in one row count as in rows of their own, if tables are indexed inside the segment.
TEST_P(EveryModel, PackingLeavesLossAndGradients) {
  if (tells_classes()) GTEST_SKIP() << "a row has one class";
  ModelSetting setting = Setting();
  if (setting.config.mixer().has_attention()) {
    setting.config.mutable_mixer()->mutable_attention()->set_index_by(
        AttentionConfig::SEGMENT_POSITION);
  }
  if (MakeMixer(setting.config.mixer())->traits().packed_rows != PackedRows::kExact) {
    GTEST_SKIP() << "where an example lies in its row counts";
  }
  TrialBatch packed = RandomBatch({1, 12, 8}, kVocabulary),
             apart = RandomBatch({2, 7, 5}, kVocabulary);
  std::ranges::fill(apart.encoder_segments, 0);
  std::ranges::fill(apart.decoder_segments, 0);
  std::ranges::fill(apart.targets, 0);
  packed.decoder_ids[5] = 0;
  for (int64_t i = 0; i < 12; ++i) {
    const int64_t row = i < 7 ? 0 : 1, place = i < 7 ? i : i - 7;
    packed.encoder_segments[i] = static_cast<int32_t>(row + 1);
    apart.encoder_ids[row * 7 + place] = packed.encoder_ids[i];
    apart.encoder_segments[row * 7 + place] = 1;
  }
  for (int64_t i = 0; i < 8; ++i) {
    const int64_t row = i < 5 ? 0 : 1, place = i < 5 ? i : i - 5;
    packed.decoder_segments[i] = static_cast<int32_t>(row + 1);
    apart.decoder_ids[row * 5 + place] = packed.decoder_ids[i];
    apart.targets[row * 5 + place] = packed.targets[i];
    apart.decoder_segments[row * 5 + place] = 1;
  }
  for (Backend& backend : Backends()) {
    const double tolerance = IsReference(backend) ? 1e-12 : 1e-5;
    ModelTrial together(setting, Fitted(packed), backend), alone(setting, Fitted(apart), backend);
    const double loss = alone.Run();
    EXPECT_NEAR(together.Run(), loss, tolerance * loss);
    ExpectSameGradients(together, alone, tolerance);
  }
}

TEST_P(EveryModel, RefusesSequencesLongerThanItsTables) {
  const Model model(GetParam().second);
  ParameterStore parameters = DeclareParameters(model);
  for (const Side side : model.architecture().sides()) {
    if (LengthLimitsOf(model.config(), side).empty()) continue;  // it has no tables
    const BatchShape shape = side == Side::kEncoder ? BatchShape{1, 17, 4} : BatchShape{1, 4, 17};
    const std::string text = ErrorOf(
        [&] { TrainingProgram(model, parameters, DType::kF32, shape, {}, TrainConfig::NOTHING); },
        ExitCode::kConfig);
    EXPECT_NE(text.find("16 positions"), std::string::npos) << text;
    EXPECT_NE(text.find("have 17"), std::string::npos) << text;
    EXPECT_NE(text.find(NameOf(side)), std::string::npos) << text;
  }
}

INSTANTIATE_TEST_SUITE_P(Model, EveryModel, testing::ValuesIn(Sampled(TrialModels())),
                         [](const auto& info) { return info.param.first; });

class ModelDropout : public testing::TestWithParam<DropoutNoise> {
 protected:
  static ModelSetting Setting() { return DropoutSetting(GetParam()); }
};

TEST_P(ModelDropout, IsAFunctionOfTheKey) {
  ModelTrial first(Setting(), Batch(), FastBackend()), second(Setting(), Batch(), FastBackend());
  TrialBatch other = Batch();
  other.dropout_keys[0] += 1;
  ModelTrial third(Setting(), other, FastBackend());
  const double loss = first.Run();
  EXPECT_EQ(second.Run(), loss);
  EXPECT_EQ(first.Gradients(), second.Gradients());
  EXPECT_NE(third.Run(), loss);
}

TEST_P(ModelDropout, BackendsDrawTheSameMasks) {
  ModelTrial reference(Setting(), Batch(), ReferenceBackend()),
      cpu(Setting(), Batch(), FastBackend());
  const double loss = reference.Run();
  EXPECT_NEAR(cpu.Run(), loss, 2e-6 * loss);
  ExpectSameGradients(cpu, reference, 1e-5);
}

TEST_P(ModelDropout, KeepsTheMeanInThePatternAskedFor) {
  constexpr int64_t kRows = 64, kLength = 8, kWidth = 32;
  ParameterStore parameters;
  ProgramBuilder builder;
  Recording recording{.program = builder,
                      .parameters = parameters,
                      .declares = &parameters,
                      .training = true,
                      .dropout_keys = builder.Input("dropout_keys", {DType::kI32, {kRows, 2}}),
                      .dropout_noise = GetParam()};
  const Scope root(recording);
  const Value ones = builder.FillConstant({DType::kF32, {kRows, kLength, kWidth}}, 1);
  builder.Output("first", Dropout(root, ones, 0.25));
  builder.Output("second", Dropout(root, ones, 0.25));
  EXPECT_EQ(Dropout(root, ones, 0), ones);
  Executable executable(std::move(builder).Build(), FastBackend(), {});
  SetBatch(RandomBatch({kRows, 1, 1}, kVocabulary), executable);
  executable.Run();
  const std::vector<double> y = Numbers(executable.Tensor("first"));
  EXPECT_NE(y, Numbers(executable.Tensor("second")));  // sites differ
  double mean = 0;
  int64_t same = 0;
  for (size_t i = 0; i < y.size(); ++i) {
    EXPECT_TRUE(y[i] == 0 || std::abs(y[i] - 4.0 / 3) < 1e-6);
    mean += y[i] / static_cast<double>(y.size());
    const size_t first_row = i / (kLength * kWidth) * kLength * kWidth + i % kWidth;
    same += y[i] == y[first_row];
  }
  // Shared over the length: 2048 draws, one deviation is 0.013.
  EXPECT_NEAR(mean, 1, 0.05);
  if (GetParam() == SHARED_OVER_LENGTH) {
    EXPECT_EQ(same, static_cast<int64_t>(y.size()));
  } else {
    EXPECT_LT(same, static_cast<int64_t>(y.size()) * 3 / 4);
  }
}

INSTANTIATE_TEST_SUITE_P(Model, ModelDropout, testing::Values(SHARED_OVER_LENGTH, PER_ELEMENT),
                         [](const auto& info) { return DropoutNoise_Name(info.param); });

TEST(Evaluation, HasNoDropout) {
  ModelConfig config = TinyModel("", "dropout: 0.5");
  const Model model(config);
  ParameterStore parameters = DeclareParameters(model);
  const Program program = EvaluationProgram(model, parameters, DType::kF32, kShape);
  EXPECT_EQ(Dump(program).find("rate=0.5"), std::string::npos);
  EXPECT_EQ(program.backward_begin, program.instructions.size());
}

// Loss from logits: log Z - sum_v q_v logit_v + z (log Z)^2, with q = 1 - s + s / V at the target
// and s / V elsewhere.
TEST(Loss, LabelSmoothingAndZLossHaveTheirClosedForms) {
  for (const bool tied : {true, false}) {
    const ModelSetting setting{.config = TinyModel("", tied ? "" : "tied_embeddings: false"),
                               .loss = {.z_loss = 0.02, .label_smoothing = 0.15},
                               .inverse_denominator = 0.125};
    TrialBatch batch = Batch();
    batch.targets[3] = 0;  // does not count
    ModelTrial trial(setting, batch, ReferenceBackend());
    Executable logits_of(LogitsProgram(trial.model(), trial.parameters(), DType::kF32, batch.shape),
                         ReferenceBackend(), trial.memory().arenas());
    SetBatch(batch, logits_of);
    logits_of.Run();
    const std::vector<double> logits = Numbers(logits_of.Tensor("logits"));
    double loss = 0, likelihood = 0, z_terms = 0;
    for (size_t t = 0; t < batch.targets.size(); ++t) {
      if (batch.targets[t] == 0) continue;
      double sum = 0, expected = 0;
      for (int32_t v = 0; v < kVocabulary; ++v) {
        const double logit = logits[t * kVocabulary + v];
        sum += std::exp(logit);
        expected += (0.15 / kVocabulary + (v == batch.targets[t] ? 0.85 : 0)) * logit;
      }
      const double log_z = std::log(sum);
      loss += log_z - expected + 0.02 * log_z * log_z;
      likelihood += log_z - logits[t * kVocabulary + batch.targets[t]];
      z_terms += 0.02 * log_z * log_z;
    }
    EXPECT_NEAR(trial.Run(), 0.125 * loss, 1e-9);
    const std::vector<double> statistics = Numbers(trial.executable().Tensor("statistics"));
    EXPECT_NEAR(statistics[0], likelihood, 1e-9);
    EXPECT_NEAR(statistics[1], z_terms, 1e-9);
    EXPECT_EQ(statistics[2], static_cast<double>(batch.targets.size()) - 1);
  }
}

}  // namespace
}  // namespace syntra
