// SPDX-License-Identifier: Apache-2.0
// Values that share memory: the result of an op that keeps all elements in their order (a reshape)
// lies where its input does, unless one of the two is written while the other is still needed.
#pragma once

#include <vector>

#include "program/program.h"

namespace syntra {

// For each value the one in whose memory it lies: itself, or an earlier one.
std::vector<Value> FindAliases(const Program& program);

// Whether an instruction has nothing to do, because its output lies in its input's memory.
bool IsAlias(const Instruction& instruction, const std::vector<Value>& aliases);

}  // namespace syntra
