// SPDX-License-Identifier: Apache-2.0
#include "program/program.h"

namespace syntra {

bool Instruction::TakesColumns(size_t operand, bool is_output) const {
  if (!op->takes_columns || operand >= 64) return false;
  const OperandSet set = op->takes_columns(call);
  return ((is_output ? set.outputs : set.inputs) >> operand & 1) != 0;
}

}  // namespace syntra
