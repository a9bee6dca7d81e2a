// SPDX-License-Identifier: Apache-2.0
// One optimizer step over all ranks: gradients of this rank's micro-batches, summed over the ranks,
// clipped, applied; the same decision on every rank.
#pragma once

#include <deque>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "data/training_data.h"
#include "dist/communicator.h"
#include "train/gradient_tree.h"
#include "train/phase_clock.h"
#include "train/replica.h"
#include "train/step_trace.h"

namespace syntra {

// What a rank tells the others with a step.
struct RankNote {
  bool stop = false, save = false;  // its wishes
  double data_seconds = 0;          // it waited for its batches
};

// What became of a step, with sums over the global batch.
struct StepResult : UpdateOutcome {
  double learning_rate = 0;
  double slots = 0;         // of inputs and targets, all ranks, padding included
  double flops = 0;         // forward and backward, all ranks
  double sync_seconds = 0;  // waiting for and adding other ranks' gradients
  PhaseSeconds phases{};    // of this rank
  int requests_to_stop = 0, requests_to_save = 0;  // how many ranks ask
  // Seconds of each rank until it was ready to add gradients: waiting for data, and computing.
  std::vector<double> rank_seconds;
};

// The peak of all ranks together, in operations a second; NaN if any rank's is unknown. All measure
// at once, as they will compute: a processor's clock depends on how many of its cores work.
double MeasurePeak(Communicator& ranks, Backend& backend, DType type);

class StepRunner {
 public:
  // The replica is that of this rank; its plan is for so many ranks.
  StepRunner(Replica& replica, Communicator& ranks);

  // Steps that the optimizer had made before the run's first one; 0 unless set.
  void SetOptimizerStepsBefore(int64_t steps) { optimizer_steps_before_ = steps; }
  // This rank's micro-batches of a batch, whose number is that of the step unless the run rolled
  // back.
  std::vector<Batch> Fetch(const TrainingData& data, int64_t batch) const;
  // Operations on them, forward and backward.
  double Flops(std::span<const Batch> batches) const;
  // What the device does is added to `trace`, if there is one. Where ranks share the parameters,
  // the new ones may still be on their way to this rank: only another Run may follow without
  // FinishGathers.
  StepResult Run(const std::vector<Batch>& batches, int64_t step, const RankNote& note,
                 Trace* trace = nullptr);
  // Whatever is enqueued from now on finds the parameters complete. The host does not wait.
  void FinishGathers();

 private:
  // What the sums over the step's examples are divided by, on all ranks together.
  BatchFacts FactsOf(const std::vector<Batch>& batches, int64_t step);
  double InverseDenominator(const std::vector<Batch>& batches);
  // 1 over the sum of the ranks' counts.
  double InverseSum(double count);
  // `note` and what `result` has of this rank, to be known by all.
  void Share(const RankNote& note, double compute_seconds, StepResult* result);
  bool in_pieces() const { return plan_.bucket_elements() > 0; }
  // Null where nothing is recorded.
  RunTimes* NextRun() { return trace_ ? trace_->NextRun() : nullptr; }
  // Leaves this rank's gradients in the replica's arena, or starts the sums over the ranks of their
  // pieces. `spoilt`: for tests, with a NaN in them.
  void Differentiate(const std::vector<Batch>& batches, const BatchFacts& facts, bool spoilt);
  void StartSum(ElementRange piece, bool spoilt);
  // The oldest of those that were started.
  void FinishSum();
  void FinishGather();
  // Each rank updates its own share; gathering the new parameters overlaps with the work that
  // follows. Ends the phase kReduce: the norm of the gradients is computed of each piece once it is
  // summed.
  void Update(const UpdateFacts& facts);
  // Collective.
  std::string FirstBadGradient();
  bool At(const char* failpoint, int64_t step) const;

  Replica& replica_;
  const TrainingPlan& plan_;
  const Config& config_;
  Communicator& ranks_;
  const BatchPartition& partition_;
  std::vector<std::shared_ptr<Exposure>> exposed_;  // what the ranks sum and bring together
  std::optional<GradientTree> tree_;                // with train.reduction EXACT
  // What was started and is not finished: ranges of the arena of gradients, and so many gathers.
  std::deque<ElementRange> sums_;
  size_t gathers_ = 0;
  PhaseClock clock_;
  std::optional<StepTrace> trace_;  // of a step that is recorded
  int64_t optimizer_steps_before_ = 0;
};

}  // namespace syntra
