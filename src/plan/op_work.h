// SPDX-License-Identifier: Apache-2.0
// The work of ops: what a program's instructions compute and move and, once it has run, how long
// they took.
#pragma once

#include <string>
#include <vector>

#include "plan/training_plan.h"
#include "program/executable.h"

namespace syntra {

// Bytes of an instruction's operands, each in the type that the program gives it. An operand that
// is given twice is read once; one that is updated or added to is read and written. If an op needs
// only some rows of a table, only these count. Parameters that a GPU reads in bf16 are moved in
// half the bytes.
double BytesMoved(const Instruction& instruction);
double BytesMoved(const Program& program);

// All calls of one op, or those with operands of the same types.
struct OpWork {
  std::string op, operands;  // "matmul", "bf16[2, 5, 8], f32[8, 4] -> bf16[2, 5, 4]"
  double calls = 0;          // of one rank in a step
  double flops = 0, bytes = 0, seconds = 0;  // of all these calls; those of recomputation included
};

// The ops of a step, of the rank with the most optimizer state, with operands of the same types.
// Ops with the most FLOPs, then bytes, come first. `seconds` are 0.
std::vector<OpWork> OpsOfStep(const TrainingPlan& plan);

// The ops of a run that was timed, the longest first. If not `by_operands`, all calls of an op
// count together, and `operands` is empty.
std::vector<OpWork> OpsOfRun(const RunTimes& times, bool by_operands);

}  // namespace syntra
