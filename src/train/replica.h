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
  TensorType type;                 // of the whole tensor, f32
  std::vector<ElementRange> held;  // of its elements, row-major
  float* values = nullptr;         // of these, one behind the other

  bool whole() const { return CountOf(held) == type.shape.size(); }
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

// What is called while a batch is differentiated, each once the work up to there is enqueued.
struct Milestones {
  std::function<void()> forward;  // the forward half
  // With pieces in the plan: a piece of the gradient arena is complete.
  std::function<void(ElementRange)> piece;
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
  // batch's part of the step's sums.
  void Differentiate(const Batch& batch, const BatchFacts& facts, Gradients gradients,
                     const Milestones& reached = {}, RunTimes* times = nullptr);
  LossSums Evaluate(const Batch& batch);
  Arena& gradients() { return gradients_; }
  TensorView values(ElementRange part) const { return values_.Part(part.begin, part.size()); }
  Backend& backend() const { return backend_; }

  // Which part of the arena of parameters each rank updates; empty where each updates all of it.
  const std::vector<SharedPiece>& shares() const { return shares_; }
  // Enqueues the optimizer's update of what is this rank's by the gradients in the arena.
  // `exchange` is called with the sums of squares of the blocks of gradients (optim/optimizer.h)
  // once the own ones are enqueued, the others being 0: where ranks share the parameters, it
  // enqueues the sum of these over the ranks.
  void Update(const UpdateFacts& facts, const std::function<void(TensorView)>& exchange = {},
              RunTimes* times = nullptr);
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
  // Without gradients and state.
  Replica(const TrainingPlan& plan, Backend& backend);

  struct Bound {
    BatchShape shape;
    std::unique_ptr<Executable> executable;
    // Of a training program, whose first section is the forward half: a bucket for each section
    // behind it, if the plan has pieces.
    std::vector<GradientBucket> buckets;
    bool cut = false;  // into these sections
  };

  // For programs whose results are read before another one runs.
  Arenas arenas() { return {values_.data(), gradients_.data(), state_.data(), &transients_}; }
  Executable& Evaluation(const BatchShape& shape);
  Bound& FindOrBind(std::vector<Bound>& bound, const BatchShape& shape,
                    const std::function<Program()>& record);
  Bound& BindTraining(const BatchShape& shape);
  void CutIntoSections(Bound& bound) const;
  std::span<float> HostValues(const Parameter& parameter);

  TrainingPlan plan_;
  Model model_;
  Backend& backend_;
  ParameterStore parameters_;
  std::vector<SharedPiece> shares_;
  std::unique_ptr<Optimizer> optimizer_;
  int64_t checkpoint_elements_ = 0;
  Arena values_, gradients_, state_;
  TransientBuffer transients_;  // of training, evaluation and decoding at every length
  std::vector<Bound> training_, evaluation_;
  std::unique_ptr<Executable> update_;
};

}  // namespace syntra
