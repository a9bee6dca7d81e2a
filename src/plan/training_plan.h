// SPDX-License-Identifier: Apache-2.0
// The plan of a run, made before anything is allocated: how ranks share batches, parameters and
// updates, the programs, the contents of a checkpoint, and the memory of all that. `plan` and
// `check` print it, a Replica is made from it, predictions take a rank's work from it.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "base/lazy.h"
#include "configs/schema/config.pb.h"
#include "kernels/backend.h"
#include "optim/optimizer.h"
#include "optim/shares.h"
#include "plan/memory_needs.h"
#include "plan/partition.h"
#include "plan/planned_model.h"
#include "program/buckets.h"

namespace syntra {

// The ranks for which a plan is made.
struct PlannedRanks {
  int ranks = 1;
  // The backend on which each rank computes. It decides the workspace of programs, and must outlive
  // the plan.
  Backend* backend = &CpuBackend();
  // The elements of the buckets in which gradients are summed; unless set, BucketElements for the
  // backend's device. Set by tests, and by predictions for GPUs that this machine does not have.
  std::optional<int64_t> bucket_elements = {};
};

// A plan depends only on the configuration, the number of ranks and their backends. It is the same
// on all ranks, and never changes. Programs and their memory plans take time, so each is made once,
// when it is first asked for.
class TrainingPlan {
 public:
  // Throws Error(kConfig) if the ranks cannot share the batch, if the model is impossible, or if a
  // size is too large.
  static std::shared_ptr<const TrainingPlan> Make(const Config& config,
                                                  const PlannedRanks& ranks = {});

  const Config& config() const { return config_; }
  int ranks() const { return ranks_; }
  Backend& backend() const { return backend_; }
  const BatchPartition& partition() const { return partition_; }
  const PlannedModel& planned_model() const { return model_; }
  const Model& model() const { return model_.model(); }
  const ParameterStore& parameters() const { return model_.parameters(); }

  // The buckets of the arena of parameters in which gradients are summed, in the order in which
  // most programs complete them; or the whole arena.
  const std::vector<ElementRange>& buckets() const { return buckets_; }
  // How many ranks share one copy of the optimizer's state (optim/shares.h); 1: each has its own.
  int shards() const { return static_cast<int>(shares_.size()); }
  // Which part of each bucket each rank updates; empty where each updates all of it.
  const std::vector<SharedBucket>& shared_buckets() const { return shared_buckets_; }
  // The optimizer for what the rank updates.
  const Optimizer& optimizer(int rank) const;
  // The program by which the rank updates its part of the parameters.
  std::shared_ptr<const RecordedUpdate> Update(int rank) const;
  // The rank that keeps most of the optimizer's state; the first of several.
  int rank_with_most_state() const;

  // The shape of the largest micro-batch. Without an encoder its rows are target_length long.
  const BatchShape& shape() const { return shape_; }
  // The program of one micro-batch, which may be shorter than shape().
  std::shared_ptr<const Program> Training(const BatchShape& shape) const {
    return trainings_.Get(shape);
  }
  std::shared_ptr<const Program> Training() const { return Training(shape_); }
  // The buckets in which ranks sum the gradients of a training program, in the order in which its
  // backward half completes them; empty: all at once, when it has ended.
  std::vector<GradientBucket> BucketsOf(const Program& training) const;
  int64_t bucket_elements() const { return bucket_elements_; }  // of a bucket; 0: there are none
  // The instruction of a training program before which each of shared_buckets() must be gathered
  // (program/buckets.h), from the last bucket to the first, which is the order in which ranks
  // gather them.
  std::vector<size_t> SharedBucketsNeeded(const Program& training) const;
  // The largest batches that the evaluations of a run with validation data compute together.
  std::vector<BatchShape> EvaluationShapes() const;
  std::shared_ptr<const Program> Evaluation(const BatchShape& shape) const {
    return model_.Evaluation(shape);
  }

  // The optimizer state in a checkpoint, as far as the rank holds it; the parameters are those of
  // planned_model().
  std::vector<PlannedTensor> StateTensors(int rank) const;

  // The bytes of parameters and optimizer state, of all ranks together.
  double checkpoint_bytes() const;

  // Forward and backward, of the whole batch; multiply-adds count 2, recomputation not at all.
  double flops_per_step() const;
  // The FLOPs that train.recompute adds to these.
  double recomputed_flops_per_step() const;
  // Whether replicas keep bf16 copies of the parameters (train/rounded_parameters.h).
  bool keeps_rounded() const { return backend_.KeepsRounded(model_.activations()); }
  // The needs of the rank that needs most.
  const MemoryNeeds& memory() const;

  TrainingPlan(const TrainingPlan&) = delete;
  TrainingPlan& operator=(const TrainingPlan&) = delete;

 private:
  // The part that one rank updates or, where there is a single share, every rank.
  struct Share {
    Lazy<std::unique_ptr<const Optimizer>> optimizer;
    Lazy<std::shared_ptr<const RecordedUpdate>> update;
  };

  TrainingPlan(const Config& config, const PlannedRanks& ranks);
  const Share& ShareOf(int rank) const;
  std::unique_ptr<const Optimizer> OptimizerOf(int rank) const;

  Config config_;
  int ranks_;
  Backend& backend_;
  BatchPartition partition_;
  std::vector<Share> shares_;
  PlannedModel model_;
  BatchShape shape_;
  int64_t bucket_elements_;
  std::vector<ElementRange> buckets_;
  std::vector<SharedBucket> shared_buckets_;
  RecordedPrograms trainings_;
  Lazy<MemoryNeeds> memory_;
};

}  // namespace syntra
