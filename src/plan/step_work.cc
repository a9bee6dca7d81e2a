// SPDX-License-Identifier: Apache-2.0
#include "plan/step_work.h"

#include <algorithm>

#include "plan/op_work.h"

namespace syntra {
namespace {

// FLOPs of the program's first n instructions, for each n.
std::vector<double> FlopsUpTo(const Program& program) {
  std::vector<double> sums{0};
  for (const Instruction& instruction : program.instructions) {
    sums.push_back(sums.back() + instruction.flops());
  }
  return sums;
}

// Where ranks share the update, the bucket is one of those that they share, or the step's sums.
BucketWork BucketWorkOf(const GradientBucket& bucket, double ready,
                        std::span<const SharedBucket> shared) {
  BucketWork work{.ready = ready, .bytes = BytesOf(bucket.end - bucket.begin)};
  const ElementRange elements{bucket.begin, bucket.end};
  const auto found = std::ranges::find(shared, elements, &SharedBucket::elements);
  if (found == shared.end()) return work;
  work.shares = found->shares.are_equal() ? BucketShares::kEqual : BucketShares::kTensors;
  work.place = static_cast<int>(shared.end() - found) - 1;  // from the last to the first
  return work;
}

// In the order in which train/step.cc sums them.
std::vector<BucketWork> BucketWorksOf(const TrainingPlan& plan, const Program& program) {
  const std::vector<double> flops = FlopsUpTo(program);
  const double before = flops[program.backward_begin];
  const double backward = flops.back() - before;
  const std::vector<size_t> needed = plan.SharedBucketsNeeded(program);
  std::vector<BucketWork> works;
  for (const GradientBucket& bucket : plan.BucketsOf(program)) {
    const double done = std::max(0.0, flops[bucket.ready] - before);
    BucketWork work = BucketWorkOf(bucket, done / backward, plan.shared_buckets());
    if (work.shares != BucketShares::kNone) work.needed = flops[needed[work.place]] / before;
    works.push_back(work);
  }
  // The last ones are summed when the program has ended.
  if (!works.empty()) works.back().ready = 1;
  return works;
}

// Read and written by an update of all parameters, as one rank alone would make it.
double UpdateBytes(const TrainingPlan& plan) {
  if (plan.shards() == 1) return BytesMoved(plan.Update(0)->program);
  const auto whole = MakeOptimizer(plan.config().optimizer(), plan.parameters());
  return BytesMoved(whole->UpdateProgram(plan.parameters()).program);
}

// The share of all parameters that the rank that updates most has.
double LargestShare(const TrainingPlan& plan) {
  int64_t most = 0;
  for (int rank = 0; rank < plan.shards(); ++rank) {
    most = std::max(most, CountOf(PartsOf(plan.shared_buckets(), rank)));
  }
  return static_cast<double>(most) / static_cast<double>(plan.parameters().arena_elements());
}

}  // namespace

StepWork StepWorkOf(const TrainingPlan& plan) {
  const std::shared_ptr<const Program> program = plan.Training();
  StepWork work;
  work.micro_batches = static_cast<double>(plan.partition().micro_batches_per_rank());
  work.rows = static_cast<double>(plan.partition().rows_per_rank);
  const std::vector<double> flops = FlopsUpTo(*program);
  work.flops = flops.back();  // with those of recomputation
  if (flops.back() > 0) work.backward_share = 1 - flops[program->backward_begin] / flops.back();
  work.parameter_bytes = BytesOf(plan.parameters().arena_elements());
  work.gradient_bytes = BytesOf(plan.parameters().gradient_elements());
  // Each half reads the parameters, what is recomputed reads its part again, the backward half
  // writes gradients. The forward half has a third of the FLOPs.
  const double again = 3 * program->recomputed_flops / program->flops;
  work.weight_bytes = (2 + again) * work.parameter_bytes + work.gradient_bytes;
  work.update_bytes = UpdateBytes(plan);
  work.sharded = plan.shards() > 1;
  work.checkpoint_bytes = plan.checkpoint_bytes();
  if (work.sharded) {
    work.update_share = LargestShare(plan);
    work.shared_state_bytes = work.checkpoint_bytes - BytesOf(plan.parameters().element_count());
  }
  work.buckets = BucketWorksOf(plan, *program);
  work.asynchronous_saves = plan.config().checkpoint().asynchronous();
  return work;
}

}  // namespace syntra
