// SPDX-License-Identifier: Apache-2.0
// The phases of a step, in their order, and what metrics.jsonl calls their seconds.
#pragma once

#include <array>
#include <string>

namespace syntra {

enum class StepPhase {
  kData,      // waiting for batches; they are made while the step before is trained
  kForward,   // the model's outputs
  kBackward,  // its gradients and, with train.recompute, what they need of the outputs once more
  kReduce,    // waiting for other ranks and adding their gradients, as far as the backward pass
              // does not hide it
  kOptimizer  // the update; where ranks share it, also bringing together what each has updated
};

inline constexpr std::array kStepPhases{"data", "forward", "backward", "reduce", "optimizer"};

// By StepPhase. What is left of a step is sending batches and telling other ranks small numbers.
using PhaseSeconds = std::array<double, kStepPhases.size()>;

inline std::string SecondsField(const std::string& phase) { return phase + "_seconds"; }

}  // namespace syntra
