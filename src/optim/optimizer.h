// SPDX-License-Identifier: Apache-2.0
// Optimizers: the layout of their state, and the program that applies one update to all parameters.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "configs/schema/config.pb.h"
#include "program/builder.h"

namespace syntra {

// A tensor of optimizer state, and what of it lies in the flat state arena.
struct StateTensor {
  std::string name;  // "optimizer/<parameter>/row"
  Shape shape;
  ElementRange held;   // of its elements, row-major
  int64_t offset = 0;  // of these, in elements
};

// The inputs of one update besides the gradients.
struct UpdateFacts {
  int64_t step = 0;  // counted from 0
  double rate = 0;   // learning rate
};

class Optimizer {
 public:
  virtual ~Optimizer() = default;
  // Of all trainable parameters.
  const std::vector<StateTensor>& state() const { return state_; }
  // The state arena begins with the sum of squares of each block of gradients.
  int64_t state_elements() const { return state_elements_; }
  int64_t block_sums() const { return blocks_; }

  // Of the parameter's elements, those that the optimizer updates if it is trainable.
  ElementRange HeldOf(const Parameter& parameter) const;

  // The program that updates the trainable parameters of the optimizer's range in place from the
  // gradient arena, with clipping as configured. If the gradients or the objective
  // (program/step_sums.h) are not finite, it changes nothing.
  // Its first own_block_sums_end() instructions sum the squares of the range's gradients. Where
  // ranks share the parameters, they exchange these sums before the rest runs.
  // Input: "hyper", which the caller sets to Hyper() before each run.
  // Outputs: "sum_squares" f32[1] over all gradients; "hyper_now", a copy of "hyper" whose entry 1
  // is the factor of the gradients, NaN if nothing was changed; "objective" f32[1] and "statistics"
  // f32[3], the sums of the step.
  Program UpdateProgram(const ParameterStore& parameters) const;
  size_t own_block_sums_end() const { return range_.size() > 0 ? 2 : 0; }
  // Entry 0 is the rate, entry 1 the factor of the gradients before clipping, which is 1.
  virtual std::vector<float> Hyper(const UpdateFacts& facts) const = 0;

 protected:
  Optimizer(double clip_norm, const ParameterStore& parameters, ElementRange range);
  // Appends a state tensor of a parameter: of its shape, or of another if the optimizer's grain is
  // a tensor.
  void AddState(const Parameter& parameter, const char* what, const Shape& shape);
  virtual int64_t hyper_size() const = 0;
  virtual void RecordUpdate(ProgramBuilder& builder, const Parameter& parameter,
                            Value hyper) const = 0;
  // The part of a state tensor that is held, as a value of the program.
  Value StateValue(ProgramBuilder& builder, const Parameter& parameter, const char* what) const;

 private:
  // The blocks' sums, of which the program makes its own; f32[blocks, 1].
  Value BlockSums(ProgramBuilder& builder) const;

  double clip_norm_;    // 0: no clipping
  ElementRange range_;  // of the arena of parameters
  int64_t blocks_;      // of that arena
  std::vector<StateTensor> state_;
  int64_t state_elements_ = 0;
};

// An optimizer of the elements `range` of the arena of parameters, a share of UpdateShares.
std::unique_ptr<Optimizer> MakeOptimizer(const OptimizerConfig& config,
                                         const ParameterStore& parameters, ElementRange range);
// Of all of them.
std::unique_ptr<Optimizer> MakeOptimizer(const OptimizerConfig& config,
                                         const ParameterStore& parameters);

}  // namespace syntra
