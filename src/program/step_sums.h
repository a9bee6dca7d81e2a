// SPDX-License-Identifier: Apache-2.0
// The step's sums behind the gradients (core/parameters.h), as values of a program: training
// programs add to them, the update reads them after the sum over ranks.
#pragma once

#include "program/builder.h"

namespace syntra {

struct StepSums {
  Value objective;   // f32[1]: what was differentiated
  Value statistics;  // f32[3]: those of linear_cross_entropy
  Value penalty;     // f32[1]: what the objective has besides the loss of the targets

  static StepSums Of(ProgramBuilder& builder, const ParameterStore& parameters) {
    return {builder.StepSum("objective", {DType::kF32, {1}}, parameters, 0),
            builder.StepSum("statistics", {DType::kF32, {3}}, parameters, 1),
            builder.StepSum("penalty", {DType::kF32, {1}}, parameters, 2)};
  }
};

}  // namespace syntra
