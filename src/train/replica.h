// SPDX-License-Identifier: Apache-2.0
// One rank's copy of a model in training: the arenas of parameters, gradients and optimizer state,
// and the programs of its plan, bound to them.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "plan/training_plan.h"
#include "train/evaluation_replica.h"

namespace syntra {

struct UpdateOutcome {
  LossSums sums;             // of the step
  double gradient_norm = 0;  // before clipping
  bool skipped = false;      // norm or objective was not finite: nothing was changed
};

// The positions of a stack that are not padding.
int64_t PositionsOf(const Batch& batch, Side side);

// The facts about the step that a micro-batch's program takes as inputs.
struct BatchFacts {
  uint64_t seed = 0;
  int64_t step = 0;
  double inverse_denominator = 1;  // of the loss
  // The factor on the ponder loss of each stack that has one: 1 / its positions.
  std::map<Side, double> inverse_positions;
};

// Functions that are called while a batch is differentiated, each once the work up to that point is
// enqueued.
struct Milestones {
  // Where ranks share the parameters: the work that is enqueued next reads the next of the plan's
  // buckets.
  std::function<void()> needs_bucket;
  std::function<void()> forward;  // the forward half
  // With buckets in the plan: a bucket of the gradient arena is complete.
  std::function<void(ElementRange)> bucket;
};

// Functions that are called while parameters are updated, each once the work up to that point is
// enqueued.
struct UpdateMilestones {
  // The work that is enqueued next reads the sum of the gradients of the next of the plan's buckets
  // and, with the last bucket, also the step's sums.
  std::function<void(size_t bucket)> needs_sum;
  // `block_sums`: the sums of squares of the blocks of gradients (optim/optimizer.h); this rank's
  // are there, and the others are 0. Where ranks share the parameters, this enqueues the sum over
  // the ranks.
  std::function<void(TensorView block_sums)> squares;
};

class Replica : public EvaluationReplica {
 public:
  // The replica of this rank, on the plan's backend. Parameters and state are zeros. Throws
  // Error(kResources) if the memory cannot be had.
  Replica(std::shared_ptr<const TrainingPlan> plan, int rank);

  const TrainingPlan& plan() const { return *plan_; }
  // The optimizer for what this rank updates.
  const Optimizer& optimizer() const { return plan_->optimizer(rank_); }

  // Whether parameters are redrawn before this step.
  bool Redraws(int64_t step) const;
  // Redraws the parameters that are due before this step. The values depend only on seed and step,
  // so all ranks have the same, and a continued run has those of an uninterrupted one.
  void RedrawParameters(uint64_t seed, int64_t step);
  // The host's copy of every tensor of a checkpoint, as far as this rank holds it. Values written
  // there take effect with Commit; CommitParameters leaves the optimizer state as it is.
  std::vector<HostTensor> HostTensors();
  void Commit();
  // Brings these tensors up to date, to be saved.
  std::vector<HostTensor> FetchTensors();
  // With a GPU, frees the host memory of these tensors, which must then not be used any more.
  void ReleaseHostTensors();

  // Enqueues the batch's gradients, which are added to the gradient arena or overwrite it, and the
  // batch's part of the step's sums.
  void Differentiate(const Batch& batch, const BatchFacts& facts, Gradients gradients,
                     const Milestones& reached = {}, RunTimes* times = nullptr);
  Arena& gradients() { return gradients_; }

  // Enqueues the optimizer's update of this rank's parameters from the gradient arena.
  void Update(const UpdateFacts& facts, const UpdateMilestones& reached = {},
              RunTimes* times = nullptr);
  // Waits for the last update and returns the outcome of the step.
  UpdateOutcome Outcome() const;

  // The bound training program for a shape, made on first use.
  Executable& Training(const BatchShape& shape) { return *BindTraining(shape).executable; }

 private:
  // A training program in sections. For each shared bucket of the parameters there is a section
  // that ends where the bucket is needed. The next section is the rest of the forward half, and
  // then each bucket has one.
  struct BoundTraining {
    BatchShape shape;
    std::unique_ptr<Executable> executable;
    std::vector<GradientBucket> buckets;
  };
  void Reach(size_t section, const BoundTraining& bound, const Milestones& reached) const;

  // For programs whose results are read before another one runs.
  Arenas arenas();
  BoundTraining& BindTraining(const BatchShape& shape);

  std::shared_ptr<const TrainingPlan> plan_;
  int rank_;
  Arena gradients_, state_;
  std::vector<BoundTraining> trainings_;
  Executable update_;
};

}  // namespace syntra
