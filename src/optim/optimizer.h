// SPDX-License-Identifier: Apache-2.0
// Optimizers: the layout of their state, and the program that applies one update to the parameters.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "configs/schema/config.pb.h"
#include "optim/shares.h"
#include "program/builder.h"

namespace syntra {

// The elements of the parameter that lie in these ranges of the arena, which are in its order.
std::vector<ElementRange> PartsOf(const Parameter& parameter, std::span<const ElementRange> arena);

// A tensor of optimizer state, and which part of it is in the flat state arena.
struct StateTensor {
  const Parameter* parameter;
  std::string name;  // "optimizer/<parameter>/row"
  Shape shape;
  std::vector<ElementRange> held;  // ranges of its elements, row-major; one after the other
  int64_t offset = 0;              // where they begin, in elements

  // The elements that an optimizer of these ranges of the arena of parameters holds.
  std::vector<ElementRange> HeldOf(std::span<const ElementRange> arena) const;
};

// The inputs of one update besides the gradients.
struct UpdateFacts {
  int64_t step = 0;  // counted from 0
  double rate = 0;   // learning rate
};

// The program of an update (Optimizer::UpdateProgram).
struct RecordedUpdate {
  Program program;
  // The program begins with the sums of squares of the parts' gradients, in the order of the parts:
  // its first block_sum_ends[i] instructions read only the parts up to the i-th.
  // Where ranks share the parameters, they exchange these sums before the rest runs.
  std::vector<size_t> block_sum_ends;
};

class Optimizer {
 public:
  virtual ~Optimizer() = default;
  // The state tensors of all trainable parameters.
  const std::vector<StateTensor>& state() const { return state_; }
  // The state arena begins with the sum of squares of each block of gradients.
  int64_t state_elements() const { return state_elements_; }
  int64_t block_sums() const { return blocks_; }

  // The parameter's elements that the optimizer updates if the parameter is trainable.
  std::vector<ElementRange> HeldOf(const Parameter& parameter) const {
    return PartsOf(parameter, ranges_);
  }

  // The program that updates the trainable parameters of the optimizer's ranges in place from the
  // gradient arena, with clipping as configured. If the gradients or the objective
  // (program/step_sums.h) are not finite, it changes nothing.
  // Input: "hyper", which the caller sets to Hyper() before each run.
  // Outputs: "sum_squares" f32[1] over all gradients; "hyper_now", a copy of "hyper" in which the
  // gradient scale includes clipping, or is NaN if nothing was changed; "objective" f32[1],
  // "penalty" f32[1] and "statistics" (math/loss_statistics.h), the sums of the step.
  RecordedUpdate UpdateProgram(const ParameterStore& parameters) const;
  // The hyperparameters by slot (math/hyperparameters.h). The gradient scale is 1, as before
  // clipping.
  virtual std::vector<float> Hyper(const UpdateFacts& facts) const = 0;

 protected:
  Optimizer(double clip_norm, const ParameterStore& parameters,
            std::span<const ElementRange> parts);
  // Appends a state tensor of a parameter: of its shape, or of another if the optimizer's grain is
  // a tensor.
  void AddState(const Parameter& parameter, const char* what, const Shape& shape);
  // `state`: that of the parameter, in the order of AddState.
  virtual void RecordUpdate(ProgramBuilder& builder, const Parameter& parameter,
                            std::span<const Value> state, Value hyper) const = 0;

 private:
  // Records the sums of the blocks of a part that is not empty.
  static void RecordBlockSums(ProgramBuilder& builder, const ElementRange& part);
  // Records the update of these elements of a parameter. Their state begins `behind` elements into
  // the parameter's state.
  void RecordPart(ProgramBuilder& builder, const Parameter& parameter, const ElementRange& elements,
                  int64_t behind, Value hyper) const;

  double clip_norm_;                  // 0: no clipping
  std::vector<ElementRange> parts_;   // of the arena of parameters, without its padding
  std::vector<ElementRange> ranges_;  // the same, joined
  int64_t blocks_;                    // of that arena
  std::vector<StateTensor> state_;
  int64_t state_elements_ = 0;
};

// How finely the updates of an optimizer of this configuration can be cut.
UpdateGrain GrainOf(const OptimizerConfig& config);

// An optimizer of these parts of the arena of parameters, in the order in which their gradients are
// there: its buckets, or what a rank updates of them (shares.h). The parameters must outlive it.
std::unique_ptr<Optimizer> MakeOptimizer(const OptimizerConfig& config,
                                         const ParameterStore& parameters,
                                         std::span<const ElementRange> parts);
// An optimizer of all parameters.
std::unique_ptr<Optimizer> MakeOptimizer(const OptimizerConfig& config,
                                         const ParameterStore& parameters);

}  // namespace syntra
