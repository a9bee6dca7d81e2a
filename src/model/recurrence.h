// SPDX-License-Identifier: Apache-2.0
// The parts of a Universal Transformer (Dehghani et al. 2019) beside the layer that it applies
// repeatedly: the signal of the step, and adaptive computation time.
#pragma once

#include "model/layers.h"
#include "nn/scope.h"

namespace syntra {

// Adds the signal of step 0, 1, .. to state [B, T, D]; `layer` is the scope of the parameters that
// the steps share.
Value AddStepSignal(const Scope& layer, const ModelConfig& model, const LayerGroup& group,
                    int64_t step, Value state);

// Adaptive computation time (Graves 2016) as in Tensor2Tensor's universal_transformer_util.py: its
// loop at full length, in which a position that has halted counts nothing. A step, for the state s
// before it and s' after it:
//
//   p = sigmoid(w s + b),                   total = halted + p running
//   halts = running [total > 1 - epsilon],  running' = running - halts
//   rest = halts (1 - halted),              halted' = halted + p running'
//   weight = p running' + rest,             output' = weight s' + (1 - weight) output
//
// The state of a halted position continues to change, and other positions read it. A position has
// pondered for sum(running) + sum(rest).
class Halting {
 public:
  // Begins with `state` [B, T, D], in which every position runs.
  Halting(const Scope& layer, const HaltingConfig& config, Value state);

  // Decides from the state before a step how much the state after it counts.
  void Decide(const Scope& layer, Value state);
  // Takes the state after the step.
  void Take(const Scope& layer, Value state);

  Value output() const { return output_; }      // [B, T, D]
  Value pondered() const { return pondered_; }  // f32 [B, T, 1]

 private:
  const HaltingConfig& config_;
  Value running_, halted_, weight_, pondered_;  // f32 [B, T, 1]
  Value output_;                                // absent at first
};

// The program's input by which a stack's ponder loss is divided, f32 [1]: the inverse of its
// positions that are not padding, of all examples of a step.
std::string InversePositionsName(Side side);

// Records the ponder loss of a stack whose positions belong to the segments, i32 [B, T].
void AddPonderLoss(const Scope& stack, const HaltingConfig& config, Side side, Value pondered,
                   Value segments);

}  // namespace syntra
