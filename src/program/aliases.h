// SPDX-License-Identifier: Apache-2.0
// Values that share memory: the result of an op that keeps all elements in their order (a reshape)
// lies where its input does, unless one of the two is written while the other is still needed.
#pragma once

#include <vector>

#include "program/program.h"

namespace syntra {

struct Aliases {
  std::vector<Value> holder;  // of each value: the one in whose memory it lies, or itself
  std::vector<bool> idle;     // of each instruction: whether that leaves it nothing to do
};

Aliases FindAliases(const Program& program);

}  // namespace syntra
