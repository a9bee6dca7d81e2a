// SPDX-License-Identifier: Apache-2.0
// What a rank does, as predictions see it: held to the program and the optimizer themselves.
#include "plan/step_work.h"

#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace syntra {
namespace {

Config Small() {
  Config config;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
      "model { width: 256 encoder_layers: 6 decoder_layers: 6 feed_forward { width: 1024 } "
      "mixer { attention { heads: 4 } } cross_attention { heads: 4 } vocabulary_size: 32128 } "
      "data { input_length: 64 } optimizer { kind: ADAMW } train { batch_size: 16 }",
      &config));
  return config;
}

StepWork WorkOf(const Config& config, int ranks, bool on_gpus) {
  return StepWorkOf(*TrainingPlan::Make(
      config,
      {.ranks = ranks, .bucket_elements = BucketElements(config.train(), ranks, !on_gpus)}));
}

TEST(StepWorks, FlopsAreThePlans) {
  const Config config = Small();
  EXPECT_DOUBLE_EQ(8 * WorkOf(config, 8, true).flops,
                   TrainingPlan::Make(config, {.ranks = 8})->flops_per_step());
  Config micro = config;
  micro.mutable_train()->set_micro_batch_size(1);
  const StepWork work = WorkOf(micro, 4, true);
  EXPECT_EQ(work.micro_batches, 4);
  EXPECT_EQ(work.rows, 4);
  EXPECT_DOUBLE_EQ(16 * work.flops, TrainingPlan::Make(config)->flops_per_step());
}

TEST(StepWorks, OpsAddUpToTheStep) {
  Config config = Small();
  config.mutable_train()->set_micro_batch_size(4);
  config.mutable_train()->set_recompute(TrainConfig::FEED_FORWARD);
  const auto plan = TrainingPlan::Make(config, {.ranks = 2});
  double flops = 0, rows_read = 0, updates = 0;
  for (const OpWork& work : OpsOfStep(*plan)) {
    flops += work.calls * work.flops;
    if (work.op == "embedding") rows_read += work.calls;
    if (work.op == "adamw") updates += work.calls;
  }
  // The loss is computed with its gradient, and no gradient of the embeddings' ids is needed.
  const double all = (plan->flops_per_step() + plan->recomputed_flops_per_step()) / 2;
  EXPECT_NEAR(flops / all, 1, 0.03);
  EXPECT_EQ(rows_read, 2 * 2);  // of inputs and of targets, in two micro-batches
  EXPECT_EQ(updates, std::ssize(plan->parameters().all()));
}

TEST(StepWorks, BytesCountEachOperandOnceAndWhatIsUpdatedTwice) {
  const auto plan = TrainingPlan::Make(Small());
  const auto ops = OpsOfStep(*plan);
  const auto find = [&](const char* op, const char* operands) {
    const auto found = std::ranges::find_if(ops, [&](const OpWork& work) {
      return work.op == op && work.operands.starts_with(operands);
    });
    EXPECT_NE(found, ops.end()) << op;
    return found == ops.end() ? OpWork{} : *found;
  };
  const OpWork product = find("matmul_relu", "f32[16, 64, 256], f32[256, 1024]");
  EXPECT_EQ(product.flops, 2.0 * 16 * 64 * 256 * 1024);
  const double hidden = 16 * 64 * 1024, mask = hidden / 8;  // a bit of each hidden value
  EXPECT_EQ(product.bytes, 4.0 * (16 * 64 * 256 + 256 * 1024 + hidden) + mask);
  const OpWork update = find("adamw", "f32[256, 1024]");
  EXPECT_EQ(update.bytes, 4.0 * (256 * 1024 + 5 + 2 * 3 * 256 * 1024));
}

// Of a feed-forward network its first product; of layers all but their last products, whose results
// no gradient reads, and the loss's.
TEST(StepWorks, RecomputedFlopsAreThoseOfTheProgram) {
  Config config = Small();
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
  EXPECT_GT(WorkOf(Small(), 1, true).backward_share, 2.0 / 3);
  EXPECT_LT(WorkOf(Small(), 1, true).backward_share, 0.8);
}

// The tied embedding, 33 MB, is the first parameter and the last that is complete: one piece, with
// little else.
TEST(StepWorks, PiecesAreTheBucketsInTheirOrder) {
  const StepWork work = WorkOf(Small(), 8, true);
  ASSERT_GT(work.pieces.size(), 2u);
  constexpr double kEmbeddingBytes = 32128 * 256 * 4, kMiB = 1 << 20;
  const double with_embedding = work.pieces[work.pieces.size() - 2].bytes;
  EXPECT_GE(with_embedding, kEmbeddingBytes);
  EXPECT_LE(with_embedding, kEmbeddingBytes + 8 * kMiB);
  double bytes = 0, last = 0;
  for (const GradientPiece& piece : work.pieces) {
    bytes += piece.bytes;
    EXPECT_GE(piece.ready, last);
    EXPECT_EQ(piece.shares, PieceShares::kNone);
    last = piece.ready;
  }
  EXPECT_DOUBLE_EQ(bytes, work.gradient_bytes);
  EXPECT_EQ(last, 1);
  EXPECT_LT(work.pieces.front().ready, 0.9);
  // On CPUs all gradients are summed at once, and one rank sums none.
  EXPECT_TRUE(WorkOf(Small(), 8, false).pieces.empty());
  EXPECT_TRUE(WorkOf(Small(), 1, true).pieces.empty());
}

// The bytes of the pieces that ranks share like this.
double SharedBytes(const StepWork& work, PieceShares shares) {
  double bytes = 0;
  for (const GradientPiece& piece : work.pieces) bytes += piece.shares == shares ? piece.bytes : 0;
  return bytes;
}

// All but the step's sums is scattered in equal parts; with whole tensors it goes to their owners.
TEST(StepWorks, SharedUpdatesAreScattered) {
  Config config = Small();
  config.mutable_train()->set_sharding(TrainConfig::OPTIMIZER_STATE);
  for (const int ranks : {2, 8, 16}) {
    const StepWork work = WorkOf(config, ranks, true);
    EXPECT_TRUE(work.sharded);
    EXPECT_EQ(work.update_share, 1.0 / ranks);
    EXPECT_EQ(SharedBytes(work, PieceShares::kEqual), work.parameter_bytes);
    EXPECT_TRUE(work.asynchronous_saves);
    EXPECT_GT(work.shared_state_bytes, 0);
  }
  config.mutable_optimizer()->set_kind(OptimizerConfig::ADAFACTOR);
  const StepWork tensors = WorkOf(config, 8, true);
  EXPECT_EQ(SharedBytes(tensors, PieceShares::kTensors), tensors.parameter_bytes);
}

// The first piece, with the embedding, is needed at once, and each of the others after the one
// before it.
TEST(StepWorks, TheForwardPassNeedsPiecesInTheOrderOfTheirGathers) {
  Config config = Small();
  config.mutable_train()->set_sharding(TrainConfig::OPTIMIZER_STATE);
  StepWork work = WorkOf(config, 2, true);
  std::erase_if(work.pieces, [](const auto& p) { return p.shares == PieceShares::kNone; });
  std::ranges::sort(work.pieces, {}, &GradientPiece::place);
  ASSERT_GT(work.pieces.size(), 2u);
  EXPECT_EQ(work.pieces.front().needed, 0);
  EXPECT_GT(work.pieces.back().needed, 0.5);
  EXPECT_LT(work.pieces.back().needed, 1);
  EXPECT_TRUE(std::ranges::is_sorted(work.pieces, {}, &GradientPiece::needed));
}

// A ring passes shares from rank to rank: with many ranks the pieces grow, or it would be latency.
TEST(StepWorks, ManyRanksShareLargerPieces) {
  Config config = Small();
  config.mutable_train()->set_batch_size(128);
  config.mutable_train()->set_sharding(TrainConfig::OPTIMIZER_STATE);
  EXPECT_GT(WorkOf(config, 2, true).pieces.size(), 3u);
  EXPECT_EQ(WorkOf(config, 128, true).pieces.size(), 2u);  // all parameters, and the step's sums
}

// p, g, m and v are read and three of them written; the norm reads g once more. Other values of the
// program are small.
TEST(StepWorks, AdamsUpdateMovesItsArenas) {
  const StepWork work = WorkOf(Small(), 1, true);
  EXPECT_NEAR(work.update_bytes / work.parameter_bytes, 8, 0.1);
}

TEST(StepWorks, ABatchThatCannotBeSharedIsRefused) {
  EXPECT_THROW(WorkOf(Small(), 3, true), Error);
}

}  // namespace
}  // namespace syntra
