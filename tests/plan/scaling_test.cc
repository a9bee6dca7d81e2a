// SPDX-License-Identifier: Apache-2.0
// Predictions against closed forms and limits.
#include "plan/scaling.h"

#include <gtest/gtest.h>

namespace syntra {
namespace {

// A step of 0.2 + 0.1 s on one GPU: 0.1 forward, 0.1 backward, 0.1 update.
StepWork Work() {
  StepWork work;
  work.flops = 2e12;
  work.backward_share = 0.5;
  work.rows = 8;
  work.update_bytes = 1e11;
  work.parameter_bytes = work.gradient_bytes = 4e9;
  for (const double ready : {0.25, 0.5, 0.75, 1.0}) {
    work.buckets.push_back({.ready = ready, .bytes = 1e9});
  }
  work.checkpoint_bytes = 12e9;
  return work;
}

Cluster Gpus() {
  Cluster cluster;
  cluster.flops = 1e13;
  cluster.memory_bandwidth = 1e12;
  cluster.inside = {1e-6, 400e9};
  cluster.between = {1e-5, 100e9};
  cluster.host_bandwidth = 50e9;
  cluster.storage_bandwidth = 2e9;
  cluster.price = 2;
  return cluster;
}

Cluster Cores(int cores) {
  Cluster cluster = Gpus();
  cluster.cores_per_node = cores;
  return cluster;
}

TEST(Scaling, OneRankHasItsWorkAlone) {
  for (const Cluster& cluster : {Gpus(), Cores(1)}) {
    const StepPrediction step = PredictStep(Work(), cluster, {1, 1});
    EXPECT_DOUBLE_EQ(step.forward, 0.1);
    EXPECT_DOUBLE_EQ(step.backward, 0.1);
    EXPECT_DOUBLE_EQ(step.update, 0.1);
    EXPECT_EQ(step.exposed(), 0);
    EXPECT_DOUBLE_EQ(step.seconds(), 0.3);
    EXPECT_DOUBLE_EQ(Efficiency(Work(), cluster, {1, 1}), 1);
  }
}

// Buckets are ready every second, and each sum takes half a second: only the last one shows.
TEST(Scaling, TheBackwardPassHidesSums) {
  const std::vector<BucketWork> buckets = Work().buckets;
  const std::vector<double> none(4, 0.0);
  EXPECT_DOUBLE_EQ(ExposedSeconds(buckets, std::vector(4, 0.5), none, 4), 0.5);
  // Twice as long as the buckets are apart: the sums queue from the first bucket on.
  EXPECT_DOUBLE_EQ(ExposedSeconds(buckets, std::vector(4, 2.0), none, 4), 1 + 4 * 2.0 - 4);
  EXPECT_DOUBLE_EQ(ExposedSeconds(buckets, std::vector(4, 0.0), none, 4), 0);
  // A large last bucket is hidden by nothing.
  EXPECT_DOUBLE_EQ(ExposedSeconds(buckets, std::vector{0.1, 0.1, 0.1, 3.0}, none, 4), 3);
}

// What is done with the sums that are there takes its time beside those that are not.
TEST(Scaling, WorkOnEarlierBucketsHidesSums) {
  const std::vector<BucketWork> buckets = Work().buckets;
  // Of 3 s for the last sum, the work on three buckets hides 0.6.
  const std::vector sums{0.1, 0.1, 0.1, 3.0};
  EXPECT_DOUBLE_EQ(ExposedSeconds(buckets, sums, std::vector(4, 0.2), 4), 3 - 3 * 0.2);
  // More work than that hides all of it.
  EXPECT_DOUBLE_EQ(ExposedSeconds(buckets, sums, std::vector(4, 2.0), 4), 0);
  // The last two sums end 2 and 4 s after the backward pass, and work on one takes 1 s.
  EXPECT_DOUBLE_EQ(
      ExposedSeconds(buckets, std::vector{0.0, 0.0, 3.0, 2.0}, std::vector{0.5, 0.5, 1.0, 1.0}, 4),
      (2 - 1) + (4 - 3));
}

TEST(Scaling, OnlyTheLastMicroBatchHidesSums) {
  StepWork work = Work();
  const double hidden_by_one = PredictStep(work, Gpus(), {2, 8}).exposed_sums;
  work.micro_batches = 4;
  work.flops /= 4;
  EXPECT_GT(PredictStep(work, Gpus(), {2, 8}).exposed_sums, hidden_by_one);
}

TEST(Scaling, CpusSumBehindTheBackwardPass) {
  const StepPrediction step = PredictStep(Work(), Cores(8), {1, 8});
  EXPECT_GT(step.sums, 0);
  EXPECT_EQ(step.exposed_sums, step.sums);
}

// Two ranks of a node have half the cores each; four on two cores have half a core each. Together
// they compute as fast as one rank, and each updates all parameters.
TEST(Scaling, RanksShareTheCoresOfTheirNode) {
  const double alone = PredictStep(Work(), Cores(2), {1, 1}).backward;
  EXPECT_DOUBLE_EQ(PredictStep(Work(), Cores(2), {1, 2}).backward, 2 * alone);
  EXPECT_DOUBLE_EQ(PredictStep(Work(), Cores(2), {1, 4}).backward, 4 * alone);
  EXPECT_DOUBLE_EQ(PredictStep(Work(), Cores(2), {1, 4}).update, 4 * 0.1);
  // Three ranks on four cores have a core each; one core idles.
  EXPECT_DOUBLE_EQ(PredictStep(Work(), Cores(4), {1, 3}).backward, 0.1);
}

TEST(Scaling, FasterLinksAreNeverWorse) {
  double last = 0;
  for (const double rate : {1e9, 1e10, 1e11, 1e12}) {
    Cluster cluster = Gpus();
    cluster.between.bandwidth = rate;
    const double efficiency = Efficiency(Work(), cluster, {16, 8});
    EXPECT_GE(efficiency, last);
    EXPECT_LE(efficiency, 1);
    last = efficiency;
  }
  EXPECT_GT(last, 0.85);
}

TEST(Scaling, MoreNodesAreNeverMoreEfficient) {
  double last = 1;
  for (int nodes = 1; nodes <= 512; nodes *= 2) {
    const double efficiency = Efficiency(Work(), Gpus(), {nodes, 8});
    EXPECT_LE(efficiency, last) << nodes;
    last = efficiency;
  }
  EXPECT_LT(last, 0.99);
}

// A share each: the update takes an n-th of the time, and the parameters must be gathered.
TEST(Scaling, RanksThatShareTheUpdate) {
  StepWork work = Work();
  work.sharded = true;
  work.update_share = 1.0 / 8;
  const auto share = [&](BucketShares shares) {
    for (BucketWork& bucket : work.buckets) bucket.shares = shares;
  };
  share(BucketShares::kEqual);
  const StepPrediction step = PredictStep(work, Gpus(), {1, 8});
  EXPECT_DOUBLE_EQ(step.update, 0.1 / 8);
  // All but the own eighth; and the sums of squares, there and back.
  EXPECT_NEAR(step.sums, 7.0 / 8 * 4e9 / 400e9, 1e-4);
  EXPECT_NEAR(step.gather, 7.0 / 8 * 4e9 * (1 + 2.0 / 512) / 400e9, 1e-4);
  EXPECT_DOUBLE_EQ(step.exposed_gather, step.gather);  // the forward pass needs all at once
  // Whole tensors go to and from their owners through the whole chain.
  share(BucketShares::kTensors);
  const StepPrediction chained = PredictStep(work, Gpus(), {1, 8});
  EXPECT_NEAR(chained.sums, 4e9 / 400e9, 1e-4);
  EXPECT_NEAR(chained.gather, 4e9 * (1 + 7.0 / 4 / 512) / 400e9, 1e-4);
}

// A bucket takes one launch and one round of the ring, however many ranks there are.
TEST(Scaling, SharedUpdatesScale) {
  const Layout many{512, 8};
  for (const BucketShares shares : {BucketShares::kEqual, BucketShares::kTensors}) {
    StepWork shared = Work();
    shared.sharded = true;
    shared.update_share = 1.0 / 4096;
    for (BucketWork& bucket : shared.buckets) bucket.shares = shares;
    EXPECT_GT(Efficiency(shared, Gpus(), many), 0.7 * Efficiency(Work(), Gpus(), many));
  }
}

// Buckets come one after another, and the forward pass reads them in their order.
TEST(Scaling, TheForwardPassHidesGathersOfWhatItReadsLater) {
  std::vector<BucketWork> buckets(3);
  for (int i = 0; i < 3; ++i) {
    // In the order of the backward pass: the last one first.
    buckets[i] = {.place = 2 - i, .needed = (2 - i) / 4.0, .shares = BucketShares::kEqual};
  }
  buckets.emplace_back();  // all ranks have all of the step's sums
  const std::vector<double> seconds{3, 1, 1, 100};
  EXPECT_DOUBLE_EQ(WaitForBuckets(buckets, seconds, 0), 5);
  // The first bucket takes 1 s; the last comes after 5 s and is needed in the middle of the pass.
  EXPECT_DOUBLE_EQ(WaitForBuckets(buckets, seconds, 4), 3);
  EXPECT_DOUBLE_EQ(WaitForBuckets(buckets, seconds, 100), 1);
}

TEST(Scaling, CheckpointsBesideTrainingCostACopy) {
  StepWork work = Work();
  work.asynchronous_saves = true;
  const CheckpointPrediction beside = PredictCheckpoint(work, Gpus(), {1, 8}, 1000);
  EXPECT_DOUBLE_EQ(beside.write, 6);
  EXPECT_DOUBLE_EQ(beside.stall, 12e9 / 50e9);
  // The next save waits for the end of this one.
  EXPECT_DOUBLE_EQ(PredictCheckpoint(work, Gpus(), {1, 8}, 2).stall, 12e9 / 50e9 + 4);
  work.asynchronous_saves = false;
  EXPECT_DOUBLE_EQ(PredictCheckpoint(work, Gpus(), {1, 8}, 1000).stall, 12e9 / 50e9 + 6);
  // Of what they share each rank copies its part.
  work.shared_state_bytes = 8e9;
  EXPECT_DOUBLE_EQ(PredictCheckpoint(work, Gpus(), {2, 8}, 1000).stall, 4.5e9 / 50e9 + 6);
}

TEST(Scaling, CostsAreOfAllGpusOrCores) {
  const RunCost gpus = CostOf(Gpus(), {4, 8}, 7200);
  EXPECT_DOUBLE_EQ(gpus.unit_hours, 64);
  EXPECT_DOUBLE_EQ(gpus.money, 128);
  EXPECT_DOUBLE_EQ(CostOf(Cores(16), {2, 4}, 3600).unit_hours, 32);
}

}  // namespace
}  // namespace syntra
