// SPDX-License-Identifier: Apache-2.0
// Optimizers: the layout of their state, and the program that applies one update to all parameters.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "configs/schema/config.pb.h"
#include "program/builder.h"

namespace syntra {

// A tensor of optimizer state in the flat state arena.
struct StateTensor {
  std::string name;  // "optimizer/<parameter>/row"
  Shape shape;
  int64_t offset = 0;  // in elements
};

// The inputs of one update besides the gradients.
struct UpdateFacts {
  int64_t step = 0;  // counted from 0
  double rate = 0;   // learning rate
};

class Optimizer {
 public:
  virtual ~Optimizer() = default;
  const std::vector<StateTensor>& state() const { return state_; }
  int64_t state_elements() const { return state_elements_; }

  // The program that updates every trainable parameter in place from the gradient arena, with
  // clipping as configured. If the gradients or the objective (program/step_sums.h) are not finite,
  // it changes nothing.
  // Input: "hyper", which the caller sets to Hyper() before each run.
  // Outputs: "sum_squares" f32[1] over all gradients; "hyper_now", a copy of "hyper" whose entry 1
  // is the factor of the gradients, NaN if nothing was changed; "objective" f32[1] and "statistics"
  // f32[3], the sums of the step.
  Program UpdateProgram(const ParameterStore& parameters) const;
  // Entry 0 is the rate, entry 1 the factor of the gradients before clipping, which is 1.
  virtual std::vector<float> Hyper(const UpdateFacts& facts) const = 0;

 protected:
  explicit Optimizer(double clip_norm) : clip_norm_(clip_norm) {}
  // Appends a state tensor and returns it.
  const StateTensor& AddState(std::string name, Shape shape);
  virtual int64_t hyper_size() const = 0;
  virtual void RecordUpdate(ProgramBuilder& builder, const Parameter& parameter,
                            Value hyper) const = 0;
  // The state tensor `name` as a value of the program.
  Value StateValue(ProgramBuilder& builder, const std::string& name) const;

 private:
  double clip_norm_;  // 0: no clipping
  std::vector<StateTensor> state_;
  int64_t state_elements_ = 0;
};

std::unique_ptr<Optimizer> MakeOptimizer(const OptimizerConfig& config,
                                         const ParameterStore& parameters);

}  // namespace syntra
