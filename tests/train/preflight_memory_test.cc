// SPDX-License-Identifier: Apache-2.0
// Whether a run fits into memory, and what is said if it does not.
#include "base/text.h"
#include "plan/fits.h"
#include "plan/recompute_choices.h"
#include "tests/train/preflights.h"

namespace syntra {
namespace {

TEST_F(Preflights, TheLargestMicroBatchThatFitsIsNamed) {
  Set("train.batch_size", "96");
  const auto bytes = [&](int rows) {
    Config config = Now();
    config.mutable_train()->set_micro_batch_size(rows);
    const auto plan = TrainingPlan::Make(config);
    // And the copy that is saved.
    return static_cast<int64_t>(plan->memory().total() + plan->checkpoint_bytes() + kProcessBytes);
  };
  const auto error_at = [&](int64_t limit) -> std::string {
    try {
      CheckFits(*TrainingPlan::Make(Now()), 1, {{limit, "the test has", true}});
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::kResources);
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(error_at(bytes(96)), "");
  const std::string text = error_at(bytes(96) - 1);
  EXPECT_NE(text.find("train.micro_batch_size=48 fits"), std::string::npos) << text;
  EXPECT_NE(text.find("activations of 96 examples at a time"), std::string::npos) << text;
  EXPECT_NE(error_at(bytes(24)).find("train.micro_batch_size=24 fits"), std::string::npos);
  EXPECT_NE(error_at(bytes(1) - 1).find("; checkpoint.asynchronous=false with train.micro_batch"),
            std::string::npos)
      << error_at(bytes(1) - 1);
  EXPECT_NE(error_at(1000).find("no micro-batch fits"), std::string::npos) << error_at(1000);
}

// What is printed is of the plan that the run goes on with.
TEST_F(Preflights, ThePlanIsHandedOn) {
  const PreflightReport report = Preflight(Now(), {});
  ASSERT_TRUE(report.plan);
  const MemoryNeeds& needs = report.plan->memory();
  const double needed = needs.total() + needs.copies(1) + kProcessBytes;
  EXPECT_TRUE(Of("memory").detail.starts_with("needs " + HumanBytes(needed) + ", "))
      << Of("memory").detail;
  EXPECT_EQ(report.plan->config().SerializeAsString(), Now().SerializeAsString());
  Set("train.reduction", "EXACT");
  Set("train.micro_batch_size", "1");
  EXPECT_FALSE(Preflight(Now(), {.ranks = 3, .ranks_on_host = 3}).plan);
}

// Samples of validation data are decoded beside what trains.
TEST_F(Preflights, SamplesTakeMemory) {
  Set("data.validation", '"' + (scratch_ / "corpus/a.jsonl").string() + '"');
  const double without = TrainingPlan::Make(Now())->memory().total();
  Set("evaluation.samples", "3");
  const auto with = TrainingPlan::Make(Now());
  EXPECT_GT(with->memory().decoding_caches, 0);
  EXPECT_GE(with->memory().total(), without + with->memory().decoding_caches);
  const auto limit = static_cast<int64_t>(without + with->memory().copies(1) + kProcessBytes);
  try {
    CheckFits(*with, 1, {{limit, "the test has", true}});
    ADD_FAILURE() << "it fits";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find(", caches for decoding "), std::string::npos)
        << error.what();
  }
}

TEST_F(Preflights, RanksShareTheirHost) {
  const auto plan = TrainingPlan::Make(Now(), {.ranks = 2});
  const auto both =
      static_cast<int64_t>(2 * (plan->memory().total() + kProcessBytes) + plan->checkpoint_bytes());
  EXPECT_NO_THROW(CheckFits(*plan, 2, {{both, "the test has", true}}));
  EXPECT_THROW(CheckFits(*plan, 2, {{both - 1, "the test has", true}}), Error);
  // A limit for each process is not shared.
  EXPECT_NO_THROW(CheckFits(*plan, 2, {{both - 1, "the test has", false}}));
}

// Every rank copies its share of the optimizer's state while it goes on, rank 0 also the
// parameters.
TEST_F(Preflights, RanksThatShareTheStateCopyTheirShares) {
  Set("train.sharding", "OPTIMIZER_STATE");
  const auto plan = TrainingPlan::Make(Now(), {.ranks = 2});
  const MemoryNeeds& needs = plan->memory();
  EXPECT_GT(needs.optimizer, 0);
  const double copies = needs.parameters + 2 * needs.optimizer;
  const auto both = static_cast<int64_t>(2 * (needs.total() + kProcessBytes) + copies);
  EXPECT_NO_THROW(CheckFits(*plan, 2, {{both, "the test has", true}}));
  EXPECT_THROW(CheckFits(*plan, 2, {{both - 1, "the test has", true}}), Error);
}

// What costs a run nothing is named before what makes it slower.
TEST_F(Preflights, SharingTheOptimizersStateIsNamedWhereItFits) {
  Set("optimizer.kind", "ADAMW");
  Set("model.width", "1024");
  Set("model.encoder_layers", "5");
  Set("model.decoder_layers", "5");
  Set("train.micro_batch_size", "1");
  Config sharing = Now();
  sharing.mutable_train()->set_sharding(TrainConfig::OPTIMIZER_STATE);
  sharing.mutable_checkpoint()->set_asynchronous(false);
  const auto shared = TrainingPlan::Make(sharing, {.ranks = 4});
  const auto limit = static_cast<int64_t>(shared->memory().total() + kProcessBytes);
  EXPECT_NO_THROW(CheckFits(*shared, 1, {{limit, "the test has", false}}));
  try {
    CheckFits(*TrainingPlan::Make(Now(), {.ranks = 4}), 1, {{limit, "the test has", false}});
    ADD_FAILURE() << "it fits";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what())
                  .find("; checkpoint.asynchronous=false and train.sharding=OPTIMIZER_STATE with "
                        "train.micro_batch_size=1 fits"),
              std::string::npos)
        << error.what();
  }
}

// The cheapest that fits, in the place of the costlier one.
TEST_F(Preflights, WhatIsRecomputedIsNamedByItsCost) {
  Set("model.encoder_layers", "6");
  Set("model.feed_forward.width", "4096");
  Set("train.micro_batch_size", "1");
  Set("checkpoint.asynchronous", "false");
  const auto total_with = [&](TrainConfig::Recompute choice) {
    const auto plan = TrainingPlan::Make(Now());
    MemoryNeeds memory = plan->memory();
    for (const RecomputeChoice& each : RecomputeChoices(*plan)) {
      if (each.recompute == choice) memory.training = each.training_bytes;
    }
    return static_cast<int64_t>(memory.total() + kProcessBytes);
  };
  const auto error_at = [&](int64_t limit) -> std::string {
    try {
      CheckFits(*TrainingPlan::Make(Now()), 1, {{limit, "the test has", true}});
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  const int64_t cheap = total_with(TrainConfig::FEED_FORWARD),
                dear = total_with(TrainConfig::LAYERS);
  EXPECT_LT(cheap, total_with(TrainConfig::NOTHING));
  EXPECT_LT(dear, cheap);
  const std::string first = error_at(cheap), second = error_at(dear);
  EXPECT_TRUE(first.ends_with("; train.recompute=FEED_FORWARD with train.micro_batch_size=1 fits"))
      << first;
  EXPECT_TRUE(second.ends_with("; train.recompute=LAYERS with train.micro_batch_size=1 fits"))
      << second;
  Set("train.recompute", "LAYERS");
  EXPECT_EQ(error_at(dear), "");
  EXPECT_NE(error_at(dear - 1).find("no micro-batch fits"), std::string::npos)
      << error_at(dear - 1);
}

// Training and validation share the memory of their activations, so the larger of them counts.
TEST_F(Preflights, ValidationTakesTheMemoryThatTrainingDoesNot) {
  const auto more_with_validation = [&](const std::string& micro_batch) {
    Set("train.micro_batch_size", micro_batch);
    Set("data.validation", "[]");
    const double without = TrainingPlan::Make(Now())->memory().total();
    Set("data.validation", '"' + (scratch_ / "corpus/a.jsonl").string() + '"');
    return TrainingPlan::Make(Now())->memory().total() > without;
  };
  EXPECT_FALSE(more_with_validation("8"));
  EXPECT_TRUE(more_with_validation("1"));
}

}  // namespace
}  // namespace syntra
