// SPDX-License-Identifier: Apache-2.0
// What a rank does, as predictions see it: held to the program and the optimizer themselves.
#include "plan/step_work.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/plan/small_model.h"

namespace syntra {
namespace {

StepWork WorkOf(const Config& config, int ranks, bool on_gpus) {
  return StepWorkOf(*TrainingPlan::Make(
      config,
      {.ranks = ranks, .bucket_elements = BucketElements(config.train(), ranks, !on_gpus)}));
}

TEST(StepWorks, FlopsAreThePlans) {
  const Config config = SmallModel();
  EXPECT_DOUBLE_EQ(8 * WorkOf(config, 8, true).flops,
                   TrainingPlan::Make(config, {.ranks = 8})->flops_per_step());
  Config micro = config;
  micro.mutable_train()->set_micro_batch_size(1);
  const StepWork work = WorkOf(micro, 4, true);
  EXPECT_EQ(work.micro_batches, 4);
  EXPECT_EQ(work.rows, 4);
  EXPECT_DOUBLE_EQ(16 * work.flops, TrainingPlan::Make(config)->flops_per_step());
}

// Of a feed-forward network its first product; of layers all but their last products, whose results
// no gradient reads, and the loss's.
TEST(StepWorks, RecomputedFlopsAreThoseOfTheProgram) {
  Config config = SmallModel();
  const auto work_with = [&](TrainConfig::Recompute recompute) {
    config.mutable_train()->set_recompute(recompute);
    return WorkOf(config, 8, true);
  };
  const StepWork nothing = work_with(TrainConfig::NOTHING);
  const StepWork network = work_with(TrainConfig::FEED_FORWARD);
  const StepWork layers = work_with(TrainConfig::LAYERS);
  const BatchShape shape = TrainingPlan::Make(config, {.ranks = 8})->shape();
  const auto positions =
      static_cast<double>(shape.rows * (shape.input_length + shape.target_length));
  EXPECT_DOUBLE_EQ(network.flops - nothing.flops, 6 * positions * 2 * 256 * 1024);
  EXPECT_GT(layers.flops, network.flops);
  EXPECT_LT(layers.flops, 4.0 / 3 * nothing.flops);
  EXPECT_GT(network.weight_bytes, nothing.weight_bytes);
  EXPECT_LT(layers.weight_bytes, nothing.weight_bytes + nothing.parameter_bytes);
}

// Two thirds, and the loss's product with the vocabulary, which is computed with its gradient.
TEST(StepWorks, TheBackwardPassIsMostOfTheStep) {
  EXPECT_GT(WorkOf(SmallModel(), 1, true).backward_share, 2.0 / 3);
  EXPECT_LT(WorkOf(SmallModel(), 1, true).backward_share, 0.8);
}

// The tied embedding, 33 MB, is the first parameter and the last that is complete: one bucket, with
// little else.
TEST(StepWorks, BucketsComeInTheirOrder) {
  const StepWork work = WorkOf(SmallModel(), 8, true);
  ASSERT_GT(work.buckets.size(), 2u);
  constexpr double kEmbeddingBytes = 32128 * 256 * 4, kMiB = 1 << 20;
  const double with_embedding = work.buckets[work.buckets.size() - 2].bytes;
  EXPECT_GE(with_embedding, kEmbeddingBytes);
  EXPECT_LE(with_embedding, kEmbeddingBytes + 8 * kMiB);
  double bytes = 0, last = 0;
  for (const BucketWork& bucket : work.buckets) {
    bytes += bucket.bytes;
    EXPECT_GE(bucket.ready, last);
    EXPECT_EQ(bucket.shares, BucketShares::kNone);
    last = bucket.ready;
  }
  EXPECT_DOUBLE_EQ(bytes, work.gradient_bytes);
  EXPECT_EQ(last, 1);
  EXPECT_LT(work.buckets.front().ready, 0.9);
  // On CPUs all gradients are summed at once, and one rank sums none.
  EXPECT_TRUE(WorkOf(SmallModel(), 8, false).buckets.empty());
  EXPECT_TRUE(WorkOf(SmallModel(), 1, true).buckets.empty());
}

// The bytes of the buckets that ranks share like this.
double SharedBytes(const StepWork& work, BucketShares shares) {
  double bytes = 0;
  for (const BucketWork& bucket : work.buckets) bytes += bucket.shares == shares ? bucket.bytes : 0;
  return bytes;
}

// All but the step's sums is scattered in equal parts; with whole tensors it goes to their owners.
TEST(StepWorks, SharedUpdatesAreScattered) {
  Config config = SmallModel();
  config.mutable_train()->set_sharding(TrainConfig::OPTIMIZER_STATE);
  for (const int ranks : {2, 8, 16}) {
    const StepWork work = WorkOf(config, ranks, true);
    EXPECT_TRUE(work.sharded);
    EXPECT_EQ(work.update_share, 1.0 / ranks);
    EXPECT_EQ(SharedBytes(work, BucketShares::kEqual), work.parameter_bytes);
    EXPECT_TRUE(work.asynchronous_saves);
    EXPECT_GT(work.shared_state_bytes, 0);
  }
  config.mutable_optimizer()->set_kind(OptimizerConfig::ADAFACTOR);
  const StepWork tensors = WorkOf(config, 8, true);
  EXPECT_EQ(SharedBytes(tensors, BucketShares::kTensors), tensors.parameter_bytes);
}

// The first bucket, with the embedding, is needed at once, and each of the others after the one
// before it.
TEST(StepWorks, TheForwardPassNeedsBucketsInTheOrderOfTheirGathers) {
  Config config = SmallModel();
  config.mutable_train()->set_sharding(TrainConfig::OPTIMIZER_STATE);
  StepWork work = WorkOf(config, 2, true);
  std::erase_if(work.buckets, [](const auto& p) { return p.shares == BucketShares::kNone; });
  std::ranges::sort(work.buckets, {}, &BucketWork::place);
  ASSERT_GT(work.buckets.size(), 2u);
  EXPECT_EQ(work.buckets.front().needed, 0);
  EXPECT_GT(work.buckets.back().needed, 0.5);
  EXPECT_LT(work.buckets.back().needed, 1);
  EXPECT_TRUE(std::ranges::is_sorted(work.buckets, {}, &BucketWork::needed));
}

// A ring passes shares from rank to rank: with many ranks the buckets grow, or it would be latency.
TEST(StepWorks, ManyRanksShareLargerBuckets) {
  Config config = SmallModel();
  config.mutable_train()->set_batch_size(128);
  config.mutable_train()->set_sharding(TrainConfig::OPTIMIZER_STATE);
  EXPECT_GT(WorkOf(config, 2, true).buckets.size(), 3u);
  EXPECT_EQ(WorkOf(config, 128, true).buckets.size(), 2u);  // all parameters, and the step's sums
}

// p, g, m and v are read and three of them written; the norm reads g once more. Other values of the
// program are small.
TEST(StepWorks, AdamsUpdateMovesItsArenas) {
  const StepWork work = WorkOf(SmallModel(), 1, true);
  EXPECT_NEAR(work.update_bytes / work.parameter_bytes, 8, 0.1);
}

TEST(StepWorks, ABatchThatCannotBeSharedIsRefused) {
  EXPECT_THROW(WorkOf(SmallModel(), 3, true), Error);
}

}  // namespace
}  // namespace syntra
