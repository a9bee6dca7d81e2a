// SPDX-License-Identifier: Apache-2.0
#include "plan/step_work.h"

#include <algorithm>
#include <utility>

#include "plan/op_work.h"

namespace syntra {
namespace {

// FLOPs of the program's first n instructions, for each n.
std::vector<double> FlopsUpTo(const Program& program) {
  std::vector<double> sums{0};
  for (const Instruction& instruction : program.instructions) {
    sums.push_back(sums.back() + FlopsOf(instruction));
  }
  return sums;
}

// Where ranks share the update, the bucket is one of the pieces, or the step's sums.
GradientPiece PieceOf(const GradientBucket& bucket, double ready,
                      std::span<const SharedPiece> pieces) {
  GradientPiece piece{.ready = ready, .bytes = BytesOf(bucket.end - bucket.begin)};
  const ElementRange elements{bucket.begin, bucket.end};
  const auto shared = std::ranges::find(pieces, elements, &SharedPiece::elements);
  if (shared == pieces.end()) return piece;
  piece.shares = shared->shares.are_equal() ? PieceShares::kEqual : PieceShares::kTensors;
  piece.place = static_cast<int>(pieces.end() - shared) - 1;  // from the last to the first
  return piece;
}

// In the order in which train/step.cc sums them.
std::vector<GradientPiece> PiecesOf(const TrainingPlan& plan, const Program& program) {
  const std::vector<double> flops = FlopsUpTo(program);
  const double before = flops[program.backward_begin];
  const double backward = flops.back() - before;
  const std::vector<size_t> needed = plan.SharedPiecesNeeded(program);
  std::vector<GradientPiece> pieces;
  for (const GradientBucket& bucket : plan.BucketsOf(program)) {
    const double done = std::max(0.0, flops[bucket.ready] - before);
    GradientPiece piece = PieceOf(bucket, done / backward, plan.shared_pieces());
    if (piece.shares != PieceShares::kNone) piece.needed = flops[needed[piece.place]] / before;
    pieces.push_back(piece);
  }
  // The last ones are summed when the program has ended.
  if (!pieces.empty()) pieces.back().ready = 1;
  return pieces;
}

// Read and written by an update of all parameters, as one rank alone would make it.
double UpdateBytes(const TrainingPlan& plan) {
  if (plan.shards() == 1) return BytesMoved(*plan.Update(0));
  const auto whole = MakeOptimizer(plan.config().optimizer(), plan.parameters());
  return BytesMoved(whole->UpdateProgram(plan.parameters()));
}

// The share of all parameters that the rank that updates most has.
double LargestShare(const TrainingPlan& plan) {
  int64_t most = 0;
  for (int rank = 0; rank < plan.shards(); ++rank) {
    most = std::max(most, CountOf(PartsOf(plan.shared_pieces(), rank)));
  }
  return static_cast<double>(most) / static_cast<double>(plan.parameters().arena_elements());
}

}  // namespace

StepWork StepWorkOf(const TrainingPlan& plan) {
  const std::shared_ptr<const Program> program = plan.Training();
  StepWork work;
  work.micro_batches = static_cast<double>(plan.partition().micro_batches_per_rank());
  work.rows = static_cast<double>(plan.partition().rows_per_rank);
  // By the convention of MFU recomputation does not count; here it does.
  work.flops = program->model_flops() + program->recomputed_flops;
  const std::vector<double> flops = FlopsUpTo(*program);
  if (flops.back() > 0) work.backward_share = 1 - flops[program->backward_begin] / flops.back();
  work.parameter_bytes = BytesOf(plan.parameters().arena_elements());
  work.gradient_bytes = BytesOf(plan.parameters().gradient_elements());
  // Each half reads the parameters, what is recomputed reads its part again, the backward half
  // writes gradients.
  const double again = program->recomputed_flops / program->forward_flops;
  work.weight_bytes = (2 + again) * work.parameter_bytes + work.gradient_bytes;
  work.update_bytes = UpdateBytes(plan);
  work.sharded = plan.shards() > 1;
  work.checkpoint_bytes = plan.checkpoint_bytes();
  if (work.sharded) {
    work.update_share = LargestShare(plan);
    work.shared_state_bytes = work.checkpoint_bytes - BytesOf(plan.parameters().element_count());
  }
  work.pieces = PiecesOf(plan, *program);
  work.asynchronous_saves = plan.config().checkpoint().asynchronous();
  return work;
}

}  // namespace syntra
