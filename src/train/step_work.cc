// SPDX-License-Identifier: Apache-2.0
#include "train/step_work.h"

#include <algorithm>

#include "data/example.h"
#include "model/programs.h"
#include "optim/optimizer.h"
#include "optim/shares.h"
#include "program/buckets.h"
#include "train/plan.h"

namespace syntra {
namespace {

double BytesOf(int64_t elements) { return static_cast<double>(elements) * sizeof(float); }

// Of the program's first instructions, `end` of them; products alone count.
std::vector<double> FlopsUpTo(const Program& program) {
  std::vector<double> sums{0};
  for (const Instruction& instruction : program.instructions) {
    const Op& op = *instruction.op;
    sums.push_back(sums.back() + (op.flops ? op.flops(instruction.call) : 0));
  }
  return sums;
}

double BytesOf(const TensorType& type) {
  return type.present() ? static_cast<double>(type.bytes()) : 0;
}

// An operand that is given twice is read once; what is updated is read, too.
double BytesMoved(const Instruction& instruction) {
  const std::vector<Value>& inputs = instruction.inputs;
  double bytes = 0;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const auto before = inputs.begin() + static_cast<std::ptrdiff_t>(i);
    const bool again = std::find(inputs.begin(), before, inputs[i]) != before;
    if (!again) bytes += BytesOf(instruction.call.inputs[i]);
  }
  for (const TensorType& type : instruction.call.outputs) {
    bytes += (instruction.op->updates ? 2 : 1) * BytesOf(type);
  }
  return bytes;
}

double BytesMoved(const Program& program) {
  double bytes = 0;
  for (const Instruction& instruction : program.instructions) bytes += BytesMoved(instruction);
  return bytes;
}

// Where ranks share the update, the bucket is one of the pieces, or the step's sums.
GradientPiece PieceOf(const GradientBucket& bucket, double ready,
                      std::span<const SharedPiece> pieces) {
  GradientPiece piece{.ready = ready, .bytes = BytesOf(bucket.end - bucket.begin)};
  const ElementRange elements{bucket.begin, bucket.end};
  const auto shared = std::ranges::find(pieces, elements, &SharedPiece::elements);
  if (shared == pieces.end()) return piece;
  const Shares& shares = shared->shares;
  piece.scattered = shares.are_equal();
  for (int rank = 0; rank < shares.ranks() && !piece.scattered; ++rank) {
    if (shares.size(rank) > 0) piece.to_owners.push_back(BytesOf(shares.size(rank)));
  }
  return piece;
}

// In the order in which train/step.cc sums them.
std::vector<GradientPiece> PiecesOf(const Program& program, const ParameterStore& parameters,
                                    int64_t bucket_elements, std::span<const SharedPiece> shares) {
  const std::vector<double> flops = FlopsUpTo(program);
  const double before = flops[program.backward_begin];
  const double backward = flops.back() - before;
  std::vector<GradientPiece> pieces;
  for (const GradientBucket& bucket : GradientBuckets(program, parameters, bucket_elements)) {
    const double done = std::max(0.0, flops[bucket.ready] - before);
    pieces.push_back(PieceOf(bucket, done / backward, shares));
  }
  // The last ones are summed when the program has ended.
  if (!pieces.empty()) pieces.back().ready = 1;
  return pieces;
}

// What the rank that updates most has of all parameters.
double LargestShare(std::span<const SharedPiece> shares, const ParameterStore& parameters,
                    int ranks) {
  int64_t most = 0;
  for (int rank = 0; rank < ranks; ++rank) most = std::max(most, CountOf(RangesOf(shares, rank)));
  return static_cast<double>(most) / static_cast<double>(parameters.arena_elements());
}

}  // namespace

StepWork StepWorkOf(const Config& config, int ranks, bool on_gpus, const RunSizes& sizes) {
  const TrainingPlan plan = TrainingPlan::Of(config, ranks, Host());
  const int64_t bucket_elements = BucketElements(config.train(), ranks, !on_gpus);
  const Model model(plan.model);
  ParameterStore parameters = DeclareParameters(model, plan.shards);
  const ExampleLengths row = RowSlots(config);
  const Program program = TrainingProgram(
      model, parameters, plan.activations,
      {plan.partition.micro_batch_rows, row.inputs, row.targets}, plan.loss, plan.recompute);
  const auto whole = MakeOptimizer(plan.optimizer, parameters);

  StepWork work;
  work.micro_batches = static_cast<double>(plan.partition.micro_batches_per_rank());
  work.rows = static_cast<double>(plan.partition.rows_per_rank);
  // By the convention of MFU recomputation does not count; here it does: one more forward half.
  work.flops = program.model_flops() + (plan.recompute ? program.forward_flops : 0);
  const std::vector<double> flops = FlopsUpTo(program);
  if (flops.back() > 0) work.backward_share = 1 - flops[program.backward_begin] / flops.back();
  work.parameter_bytes = BytesOf(parameters.arena_elements());
  work.gradient_bytes = BytesOf(parameters.gradient_elements());
  // Each half reads the parameters, the backward half writes gradients.
  work.weight_bytes = (plan.recompute ? 3 : 2) * work.parameter_bytes + work.gradient_bytes;
  work.update_bytes = BytesMoved(whole->UpdateProgram(parameters));
  work.sharded = plan.shards > 1;
  std::vector<SharedPiece> shares;
  if (work.sharded) {
    shares = UpdateShares(parameters, GrainOf(plan.optimizer), plan.shards, bucket_elements);
    work.update_share = LargestShare(shares, parameters, plan.shards);
    work.shared_state_bytes = sizes.checkpoint_bytes - BytesOf(parameters.element_count());
  }
  if (bucket_elements > 0) {
    work.pieces = PiecesOf(program, parameters, bucket_elements, shares);
  }
  work.checkpoint_bytes = sizes.checkpoint_bytes;
  work.asynchronous_saves = sizes.asynchronous_saves;
  return work;
}

}  // namespace syntra
