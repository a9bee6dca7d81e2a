// SPDX-License-Identifier: Apache-2.0
// A replica runs the programs of its plan and takes the memory that it says: alone, as one of four
// that share the optimizer's state, and while it decodes.
#include "train/replica.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <fstream>

#include "checkpoint/layout.h"
#include "config/config.h"
#include "decode/batch_decoder.h"
#include "kernels/packed_weights.h"
#include "kernels/tested.h"
#include "plan/fits.h"
#include "train/rounded_copies.h"

namespace syntra {
namespace {

// Large enough on the host that what else a process holds does not count.
Config ConfigFor(const Device& device, const std::string& sharding,
                 const std::string& precision = "FP32") {
  const bool large = device.is_host();
  return ParseConfig(
      "x",
      fmt::format(
          "model {{ width: {} encoder_layers: 2 decoder_layers: 2 vocabulary_size: {} }} "
          "data {{ input_length: 16 }} "
          "train {{ batch_size: 4 micro_batch_size: 1 sharding: {} precision: {} device: CPU }} "
          "optimizer {{ kind: ADAMW }}",
          large ? 512 : 32, large ? 32000 : 1000, sharding, precision),
      {}, kForModel);
}

// That the device holds, or of the host's memory this process.
double HeldBytes(const Device& device) {
  if (!device.is_host()) return static_cast<double>(device.peak_bytes());
  std::ifstream file("/proc/self/statm");
  int64_t all = 0, resident = 0;
  file >> all >> resident;
  return static_cast<double>(resident * sysconf(_SC_PAGESIZE));
}

std::shared_ptr<const TrainingPlan> PlanFor(const std::string& sharding, Backend& backend,
                                            const std::string& precision = "FP32") {
  return TrainingPlan::Make(ConfigFor(backend.device(), sharding, precision),
                            {.ranks = 4, .backend = &backend});
}

Batch SomeBatch(const BatchShape& shape) {
  Batch batch(shape.rows, shape.input_length, shape.target_length);
  for (const char* name : {"encoder_ids", "decoder_ids", "targets"}) {
    std::ranges::fill(batch[name], 7);
  }
  for (const char* name : {"encoder_segments", "decoder_segments"}) {
    std::ranges::fill(batch[name], 1);
  }
  return batch;
}

double PlannedOverMeasured(const std::string& sharding, const std::string& precision) {
  Backend& backend = FastBackend();
  const auto plan = PlanFor(sharding, backend, precision);
  const double planned = plan->memory().total();
  const Batch batch = SomeBatch(plan->shape());
  const double before = HeldBytes(backend.device());
  Replica replica(plan, 0);
  replica.InitializeParameters(1);
  replica.Differentiate(batch, {}, Gradients::kReplace);
  replica.Update({.step = 0, .rate = 0.01});
  EXPECT_FALSE(replica.Outcome().skipped);
  return planned / (HeldBytes(backend.device()) - before);
}

// In a process of its own, which has not held memory before.
void ExpectAsPlanned(const std::string& sharding, const std::string& precision) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  const auto measure = [&] {
    const double ratio = PlannedOverMeasured(sharding, precision);
    fmt::print(stderr, "planned over measured: {}\n", ratio);
    std::exit(std::abs(ratio - 1) < 0.03 ? 0 : 1);
  };
  EXPECT_EXIT(measure(), testing::ExitedWithCode(0), "planned over measured");
}

TEST(ReplicaMemory, IsWhatThePlanSaysAlone) { ExpectAsPlanned("NONE", "FP32"); }

TEST(ReplicaMemory, IsWhatThePlanSaysOfASharedStateInBf16) {
  ExpectAsPlanned("OPTIMIZER_STATE", "BF16");
}

TEST(ReplicaMemory, OfASharedStateIsLess) {
  const auto whole = PlanFor("NONE", FastBackend());
  const auto shared = PlanFor("OPTIMIZER_STATE", FastBackend());
  EXPECT_NEAR(shared->memory().optimizer, whole->memory().optimizer / 4,
              0.01 * whole->memory().optimizer);
  EXPECT_EQ(shared->checkpoint_bytes(), whole->checkpoint_bytes());
}

// None is recorded again, whoever needs it.
TEST(ReplicaPrograms, AreThePlans) {
  const auto plan = PlanFor("OPTIMIZER_STATE", FastBackend());
  plan->memory();
  Replica first(plan, 1), second(plan, 1);
  const Program* training = &first.Training(plan->shape()).program();
  EXPECT_EQ(training, plan->Training().get());
  EXPECT_EQ(training, &second.Training(plan->shape()).program());
  EXPECT_EQ(&first.optimizer(), &plan->optimizer(1));
}

// The tensors of all ranks are those of a checkpoint, each element held once or, of a parameter, by
// every rank.
TEST(ReplicaTensors, AreThePlans) {
  const auto plan = PlanFor("OPTIMIZER_STATE", FastBackend());
  double held = 0;
  for (int rank = 0; rank < 4; ++rank) {
    Replica replica(plan, rank);
    for (const HostTensor& tensor : replica.HostTensors()) {
      if (rank > 0 && tensor.name.starts_with(kParametersGroup)) continue;
      held += static_cast<double>(CountOf(tensor.held)) * sizeof(float);
    }
  }
  EXPECT_EQ(held, plan->checkpoint_bytes());
}

// Whoever writes parameters also writes their bf16 copies.
TEST(ReplicaCopies, AreTheParametersRounded) {
  if (!FastBackend().KeepsRounded(DType::kBF16)) GTEST_SKIP() << "only GPUs keep copies";
  Config config = ConfigFor(FastBackend().device(), "NONE", "BF16");
  config.mutable_train()->set_batch_size(1);
  config.mutable_data()->set_input_length(8);
  config.mutable_model()->set_encoder_layers(1);
  config.mutable_model()->set_decoder_layers(1);
  config.mutable_model()->set_vocabulary_size(200);
  for (const auto kind : {OptimizerConfig::ADAMW, OptimizerConfig::ADAFACTOR}) {
    SCOPED_TRACE(OptimizerConfig::Kind_Name(kind));
    config.mutable_optimizer()->set_kind(kind);
    config.mutable_optimizer()->set_min_factored_size(16);
    const auto plan = TrainingPlan::Make(config, {.backend = &FastBackend()});
    Replica replica(plan, 0);
    ExpectCopiesAreRounded(replica);
    replica.InitializeParameters(1);
    ExpectCopiesAreRounded(replica);
    const uint64_t before = replica.ParameterDigest();
    replica.Differentiate(SomeBatch(plan->shape()), {}, Gradients::kReplace);
    replica.Update({.step = 0, .rate = 0.01});
    EXPECT_NE(replica.ParameterDigest(), before);
    ExpectCopiesAreRounded(replica);
    for (const HostTensor& tensor : replica.HostTensors()) {
      tensor.Fill([](TensorView whole) { std::ranges::fill(whole.As<float>(), 1.01f); });
    }
    replica.Commit();
    ExpectCopiesAreRounded(replica);
  }
}

std::vector<float> FirstLogits(EvaluationReplica& replica) {
  DecodeSession session(replica.trained(), {.inputs = 2, .input_length = 16, .max_length = 8},
                        NextTokens::kLogits);
  session.Start(std::vector<int32_t>(32, 7), std::vector<int32_t>(32, 1));
  session.Append(session.first_tokens());
  const std::span<const float> logits = session.logits().all;
  return {logits.begin(), logits.end()};
}

// Weights are packed from the parameters that were committed last.
TEST(PackedWeightsOfAReplica, AreTheParameters) {
  const Config config = ConfigFor(FastBackend().device(), "NONE");
  const auto model = std::make_shared<const PlannedModel>(config.model(), DType::kF32);
  EvaluationReplica packed(model, FastBackend()), plain(model, FastBackend());
  packed.PackWeights();
  std::vector<float> before;
  for (const uint64_t seed : {1, 2}) {
    packed.InitializeParameters(seed);
    plain.InitializeParameters(seed);
    const std::vector<float> logits = FirstLogits(packed), expected = FirstLogits(plain);
    for (size_t i = 0; i < logits.size(); ++i) ASSERT_NEAR(logits[i], expected[i], 1e-4);
    EXPECT_NE(logits, before);
    before = logits;
  }
  EXPECT_EQ(packed.trained().packed->bytes() > 0, FastBackend().device().is_host());
  EXPECT_EQ(plain.trained().packed, nullptr);
}

Config DecodingConfigFor(int64_t samples) {
  Config config = ConfigFor(FastBackend().device(), "NONE", "BF16");
  config.mutable_train()->set_batch_size(1);
  config.mutable_data()->add_validation("validation.txt");
  config.mutable_evaluation()->set_samples(static_cast<int32_t>(samples));
  return config;
}

// As many inputs as the run decodes, as long as they may be, in a session of their own.
TEST(DecodingMemory, IsThatOfTheLargestSession) {
  Backend& backend = FastBackend();
  const int64_t samples = 3;
  const Config config = DecodingConfigFor(samples);
  const auto plan = TrainingPlan::Make(config, {.backend = &backend});
  Replica replica(plan, 0);
  const DecodeSettings settings = DecodeSettingsOf(config);
  TransientBuffer transients(backend.device());
  TrainedModel model = replica.trained();
  model.transients = &transients;
  const DecodeSession session(model,
                              {.inputs = samples,
                               .input_length = settings.input_length,
                               .max_length = settings.output_length},
                              NextTokens::kBest);
  EXPECT_EQ(plan->memory().decoding_caches, static_cast<double>(session.cache_bytes()));
  EXPECT_EQ(plan->memory().decoding, static_cast<double>(transients.size()));
}

TEST(DecodingMemory, OfManyInputsIsThatOfABatch) {
  Backend& backend = FastBackend();
  const auto memory = [&](const Config& config) {
    return TrainingPlan::Make(config, {.backend = &backend})->memory();
  };
  const double few = memory(DecodingConfigFor(192)).decoding_caches;
  const double many = memory(DecodingConfigFor(1000000)).decoding_caches;
  EXPECT_GT(few, 0);
  EXPECT_EQ(many, few);
  EXPECT_EQ(memory(ConfigFor(backend.device(), "NONE")).decoding_caches, 0);
}

// Ranks that compute on GPUs hold their state in the host's memory, too, while they read a
// checkpoint.
TEST(HostMemory, OfAllRanksIsChecked) {
  Backend& backend = FastBackend();
  const bool on_host = backend.device().is_host();
  const auto plan = PlanFor("NONE", backend);
  const MemoryNeeds& needs = plan->memory();
  const double each = on_host ? needs.total() : needs.parameters + needs.optimizer;
  const double all = 4 * (each + kProcessBytes) + needs.copies(4);
  const auto held = static_cast<int64_t>(std::ceil(all));
  EXPECT_NO_THROW(CheckFits(*plan, 4, {{held, "the test has", true}}));
  try {
    CheckFits(*plan, 4, {{held - 2, "the test has", true}});
    ADD_FAILURE() << "it fits";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kResources);
    const std::string text = error.what();
    EXPECT_EQ(text.find("of the host's memory") != text.npos, !on_host) << text;
    EXPECT_EQ(text.find("while a checkpoint is read or written") != text.npos, !on_host) << text;
    EXPECT_TRUE(on_host || text.find("; checkpoint.asynchronous=false with ") != text.npos) << text;
  }
}

TEST(HostMemory, IsGivenBackAndTakenAgain) {
  Replica replica(PlanFor("NONE", FastBackend()), 1);
  replica.InitializeParameters(1);
  const uint64_t digest = replica.ParameterDigest();
  replica.ReleaseHostTensors();
  EXPECT_EQ(replica.ParameterDigest(), digest);
}

// Text is decoded, labels are scored.
TEST(DecodingMemory, OfTasks) {
  Config config = DecodingConfigFor(0);
  const auto caches = [&] {
    return TrainingPlan::Make(config, {.backend = &FastBackend()})->memory().decoding_caches;
  };
  EXPECT_EQ(caches(), 0);
  config.mutable_data()->clear_validation();
  config.mutable_data()->add_task()->mutable_cb();
  EXPECT_GT(caches(), 0);
  config.mutable_evaluation()->set_rank_classification(true);
  EXPECT_EQ(caches(), 0);
}

}  // namespace
}  // namespace syntra
