// SPDX-License-Identifier: Apache-2.0
// One optimizer step over all ranks: gradients of this rank's micro-batches, summed over the ranks,
// clipped, applied; the same decision on every rank.
#pragma once

#include <deque>
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

// The facts that a rank shares with the others in each step.
struct RankNote {
  bool stop = false, save = false;  // what the rank asks for
  double data_seconds = 0;          // how long the rank waited for its batches
};

// The outcome of a step, with sums over the global batch.
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

// The peak of all ranks together, in operations a second; NaN if any rank's is unknown. All ranks
// measure at the same time, since they will compute at the same time: a processor's clock depends
// on how many of its cores work.
double MeasurePeak(Communicator& ranks, Backend& backend, DType type);

class StepRunner {
 public:
  // `replica` is that of this rank; its plan is for as many ranks as `ranks` has.
  StepRunner(Replica& replica, Communicator& ranks);

  // For tests: this rank's first parameter becomes 1.
  void SpoilParameter();
  // Steps that the optimizer had made before the run's first one; 0 unless set.
  void SetOptimizerStepsBefore(int64_t steps) { optimizer_steps_before_ = steps; }
  // This rank's micro-batches of a batch, whose number is that of the step unless the run rolled
  // back.
  std::vector<Batch> Fetch(const TrainingData& data, int64_t batch) const;
  // The operations of a step on these batches, forward and backward.
  double Flops(std::span<const Batch> batches) const;
  // Makes a step. The device's work is added to `trace`, if there is one. Where ranks share the
  // parameters, the new ones may still be on their way to this rank when this returns: before
  // anything but another Run, call FinishGathers.
  StepResult Run(const std::vector<Batch>& batches, int64_t step, const RankNote& note,
                 Trace* trace = nullptr);
  // Work that is enqueued after this call sees all gathered parameters. The host does not wait.
  void FinishGathers();

 private:
  // The step's facts for its programs. Sums over the step's examples are divided by counts of all
  // ranks.
  BatchFacts FactsOf(const std::vector<Batch>& batches, int64_t step);
  double InverseDenominator(const std::vector<Batch>& batches);
  // 1 over the sum of the ranks' counts.
  double InverseSum(double count);
  // Shares `note` and this rank's part of `result` with all ranks.
  void Share(const RankNote& note, double compute_seconds, StepResult* result);
  bool in_buckets() const { return plan_.bucket_elements() > 0; }
  // Null where nothing is recorded.
  RunTimes* NextRun() { return trace_ ? trace_->NextRun() : nullptr; }
  // Leaves this rank's gradients in the replica's arena, or starts the sums over the ranks of their
  // buckets.
  void Differentiate(const std::vector<Batch>& batches, const BatchFacts& facts);
  void StartSum(ElementRange bucket);
  // Finishes the oldest sum that was started.
  void FinishSum();
  void FinishGather();
  // Each rank updates its own share; gathering the new parameters overlaps with the work that
  // follows. Ends the phase kReduce, which includes the norm of the gradients: its part of each
  // bucket is computed once the bucket is summed.
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
  // Collectives that were started and are not finished: the ranges of the arena of gradients being
  // summed, and the number of gathers.
  std::deque<ElementRange> sums_;
  size_t gathers_ = 0;
  PhaseClock clock_;
  std::optional<StepTrace> trace_;  // of a step that is recorded
  bool spoils_ = false;             // for tests: this step's gradients get a NaN
  int64_t optimizer_steps_before_ = 0;
};

}  // namespace syntra
