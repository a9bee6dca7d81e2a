// SPDX-License-Identifier: Apache-2.0
// Training steps on random tokens, for `bench` and `plan --measure`.
#pragma once

#include <array>
#include <memory>

#include "cli/backend.h"
#include "train/replica.h"

namespace syntra {

// A replica and a batch, with which the same step is repeated.
class StepBench {
 public:
  // A rank's share of the batch is all of it. `ranks` may be null: one process alone.
  explicit StepBench(const Config& config, Communicator* ranks = nullptr);

  // Runs one step and returns the seconds of its phases, in order. On a GPU the first phase only
  // enqueues, so that the GPU does not pause; with `apart` it waits, so that the phases can be told
  // apart.
  std::array<double, 2> Step(bool apart = false);
  static constexpr const char* kPhases[] = {"forward and backward", "update"};

  Device& device() { return backend_->device(); }

  const TrainingPlan& plan() const { return replica_.plan(); }
  Executable& Training() { return replica_.Training(plan().shape()); }
  double PeakFlops() { return backend_->PeakFlops(plan().planned_model().activations()); }
  double flops() { return Training().program().flops; }
  int64_t parameters() const { return replica_.parameters().element_count(); }
  // Where inputs and targets share a row, of both.
  int64_t input_tokens() const {
    return batch_.rows * (batch_.input_length > 0 ? batch_.input_length : batch_.target_length);
  }

 private:
  BatchFacts FactsOf(int64_t step) const;

  std::shared_ptr<Backend> backend_;
  Replica replica_;
  Batch batch_;
  int64_t next_ = 0;
};

}  // namespace syntra
