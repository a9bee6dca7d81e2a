// SPDX-License-Identifier: Apache-2.0
// One rank's copy of a model in training: the arenas of parameters, gradients and optimizer state,
// and the programs bound to them.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "checkpoint/layout.h"
#include "checkpoint/save.h"
#include "core/arena.h"
#include "data/batch.h"
#include "decode/session.h"
#include "model/programs.h"
#include "optim/optimizer.h"
#include "program/buckets.h"
#include "program/executable.h"

namespace syntra {

DType ActivationType(TrainConfig::Precision precision);

// Sums over a batch; they add over micro-batches and ranks.
struct LossSums {
  double objective = 0;       // what was differentiated
  double negative_log_p = 0;  // over target tokens
  double z_loss = 0;
  double tokens = 0;
  double penalty = 0;  // what the objective has besides the loss of the targets
  double PerToken() const { return tokens > 0 ? negative_log_p / tokens : 0; }
};

struct UpdateOutcome {
  LossSums sums;             // of the step
  double gradient_norm = 0;  // before clipping
  bool skipped = false;      // norm or objective was not finite: nothing was changed
};

inline BatchShape ShapeOf(const Batch& batch) {
  return {batch.rows, batch.input_length, batch.target_length};
}

// The positions of a stack that are not padding.
int64_t PositionsOf(const Batch& batch, Side side);

struct HostTensor {
  std::string name;
  TensorView view;
};

std::vector<TensorRecord> RecordsOf(std::span<const HostTensor> tensors);

// What surrounds the sums of one micro-batch.
struct BatchFacts {
  uint64_t seed = 0;
  int64_t step = 0;
  double inverse_denominator = 1;  // of the loss
  // Of the ponder losses: of the stacks that have one, Side by Side.
  std::map<Side, double> inverse_positions;
};

class Replica {
 public:
  // `optimizer` may be null for evaluation only; then there are no gradients and no state. The
  // backend must outlive the replica.
  Replica(const ModelConfig& model, const OptimizerConfig* optimizer, DType activations,
          Backend& backend);

  const Model& model() const { return model_; }
  const ParameterStore& parameters() const { return parameters_; }
  const Optimizer& optimizer() const { return *optimizer_; }

  void InitializeParameters(uint64_t seed);
  // Draws anew the parameters whose turn it is before this step: by seed and step alone, so that
  // all ranks have the same, and a run that continues those of one that went on.
  void RedrawParameters(uint64_t seed, int64_t step);
  // The host's copy of every tensor of a checkpoint: "parameters/<name>", "optimizer/...". What is
  // written there counts from Commit on; CommitParameters leaves the optimizer state as it is.
  std::vector<HostTensor> HostTensors();
  void Commit();
  // Of parameters and optimizer state: what a checkpoint holds.
  double bytes() const {
    return static_cast<double>(values_.elements() + state_.elements()) * sizeof(float);
  }
  void CommitParameters();
  // The same tensors as they are now, to be saved.
  std::vector<TensorRecord> Tensors();

  // Enqueues the batch's gradients, which are added to the gradient arena or overwrite it, and the
  // batch's part of the step's sums. With SetBuckets, `ready` is called with each piece of the
  // arena once the work that completes it is enqueued.
  void Differentiate(const Batch& batch, const BatchFacts& facts, Gradients gradients,
                     const std::function<void(TensorView)>& ready = {});
  LossSums Evaluate(const Batch& batch);
  Arena& gradients() { return gradients_; }
  Backend& backend() const { return backend_; }
  // Enqueues the optimizer's update by the gradients in the arena.
  void Update(const UpdateFacts& facts);
  // Waits for the last update and returns what became of the step.
  UpdateOutcome Outcome() const;
  // Zeroes the optimizer state, as if a checkpoint had not held it.
  void ForgetState();

  // What decoding and scoring read; the replica must outlive them.
  TrainedModel trained() {
    return {model_, parameters_, values_.data(), activations_, backend_, &transients_};
  }

  // Chosen before the first Differentiate: the loss, and the size of the pieces in which the ranks
  // add gradients, 0: all at once.
  void SetLoss(const LossOptions& loss, bool recompute);
  void SetBuckets(int64_t elements) { bucket_elements_ = elements; }
  // The bound training program for a shape, made on first use.
  Executable& Training(const BatchShape& shape);

  // XXH3 of the parameter arena: equal on replicas that are equal.
  uint64_t ParameterDigest();

 private:
  struct Bound {
    BatchShape shape;
    std::unique_ptr<Executable> executable;
    std::vector<GradientBucket> buckets;  // of a training program, by segment
  };

  // For programs whose results are read before another one runs.
  Arenas arenas() { return {values_.data(), gradients_.data(), state_.data(), &transients_}; }
  Executable& Evaluation(const BatchShape& shape);
  Bound& FindOrBind(std::vector<Bound>& bound, const BatchShape& shape,
                    const std::function<Program()>& record);
  Bound& BindTraining(const BatchShape& shape);
  TensorView PieceOf(const GradientBucket& bucket) const;

  std::span<float> HostValues(const Parameter& parameter);

  Model model_;
  DType activations_;
  Backend& backend_;
  ParameterStore parameters_;
  std::unique_ptr<Optimizer> optimizer_;
  Arena values_, gradients_, state_;
  TransientBuffer transients_;  // of training, evaluation and decoding at every length
  LossOptions loss_;
  bool recompute_ = false;
  int64_t bucket_elements_ = 0;
  std::vector<Bound> training_, evaluation_;
  std::unique_ptr<Executable> update_;
};

}  // namespace syntra
