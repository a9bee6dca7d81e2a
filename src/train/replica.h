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
#include "optim/shares.h"
#include "program/buckets.h"
#include "program/executable.h"
#include "train/plan.h"

namespace syntra {

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

// The host's copy of a tensor of a checkpoint, as far as this rank holds it.
struct HostTensor {
  std::string name;
  TensorType type;    // of the whole tensor, f32
  ElementRange held;  // of its elements, row-major
  float* values = nullptr;

  bool whole() const { return held.size() == type.shape.size(); }
  // Writes what is held out of what `read` puts into a view of the whole tensor.
  void Fill(const std::function<void(TensorView)>& read) const;
};

// Of what is held.
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
  // One that a rank trains. The backend must outlive the replica.
  Replica(const TrainingPlan& plan, int rank, Backend& backend);
  // For evaluation only: there are no gradients and no state.
  Replica(const ModelConfig& model, DType activations, Backend& backend);

  const TrainingPlan& plan() const { return plan_; }
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
  // Of parameters and optimizer state: what a checkpoint holds of all ranks.
  double bytes() const { return static_cast<double>(checkpoint_elements_) * sizeof(float); }
  void CommitParameters();
  // The same tensors as they are now, to be saved.
  std::vector<HostTensor> FetchTensors();

  // Enqueues the batch's gradients, which are added to the gradient arena or overwrite it, and the
  // batch's part of the step's sums. With pieces in the plan, `ready` is called with each piece of
  // the arena once the work that completes it is enqueued.
  void Differentiate(const Batch& batch, const BatchFacts& facts, Gradients gradients,
                     const std::function<void(ElementRange)>& ready = {});
  LossSums Evaluate(const Batch& batch);
  Arena& gradients() { return gradients_; }
  TensorView values() const { return values_.view(); }
  Backend& backend() const { return backend_; }

  // Which part of the arena of parameters each rank updates; with one share, each rank all of it.
  const Shares& shares() const { return shares_; }
  // This rank's.
  ElementRange own() const { return own_; }
  // What the ranks share of the arena: all parameters or none.
  ElementRange shared() const { return {0, shares_.ranks() > 1 ? shares_.elements() : 0}; }
  // Enqueues the optimizer's update of the own share by the gradients in the arena. `exchange` is
  // called with the sums of squares of all blocks of gradients (optim/optimizer.h) once the own
  // ones are enqueued: where ranks share the parameters, it enqueues what brings the others'.
  void Update(const UpdateFacts& facts, const std::function<void(TensorView)>& exchange = {});
  // Waits for the last update and returns what became of the step.
  UpdateOutcome Outcome() const;
  // Zeroes the optimizer state, as if a checkpoint had not held it.
  void ForgetState();

  // What decoding and scoring read; the replica must outlive them.
  TrainedModel trained() {
    return {model_, parameters_, values_.data(), plan_.activations, backend_, &transients_};
  }

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
  std::span<float> HostValues(const Parameter& parameter);

  TrainingPlan plan_;
  Model model_;
  Backend& backend_;
  ParameterStore parameters_;
  Shares shares_;
  ElementRange own_;
  std::unique_ptr<Optimizer> optimizer_;
  int64_t checkpoint_elements_ = 0;
  Arena values_, gradients_, state_;
  TransientBuffer transients_;  // of training, evaluation and decoding at every length
  std::vector<Bound> training_, evaluation_;
  std::unique_ptr<Executable> update_;
};

}  // namespace syntra
