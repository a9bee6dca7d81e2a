// SPDX-License-Identifier: Apache-2.0
// The step's sums after the gradients (core/parameters.h), as values of a program: training
// programs add to them, the update reads them after the sum over ranks.
#pragma once

#include "kernels/math/loss_statistics.h"
#include "program/builder.h"

namespace syntra {

struct StepSums {
  Value objective;   // f32[1]: what was differentiated
  Value statistics;  // by slot (math/loss_statistics.h)
  Value penalty;     // f32[1]: the part of the objective that is not the loss of the targets

  static StepSums Of(ProgramBuilder& builder, const ParameterStore& parameters) {
    return {builder.StepSum("objective", {DType::kF32, {1}}, parameters, 0),
            builder.StepSum("statistics", {DType::kF32, {loss_statistics::kSlots}}, parameters, 1),
            builder.StepSum("penalty", {DType::kF32, {1}}, parameters, 2)};
  }
};

}  // namespace syntra
