// SPDX-License-Identifier: Apache-2.0
// Values that share memory. The result of an op that keeps all elements in their order (a reshape)
// lies where its input does, unless one of the two is written while the other is still needed. That
// of an elementwise op replaces an input that is not needed any more.
// Values that an op wants side by side (Op::side_by_side) become columns of one matrix, if all
// instructions that read or write them can deal with columns.
#pragma once

#include <vector>

#include "program/program.h"

namespace syntra {

// Where a value lies.
struct Place {
  Value holder;        // the value whose memory it shares, or itself
  int64_t column = 0;  // of the holder's memory: where the value begins
  int64_t pitch = 0;   // columns of the matrix of which it is some (TensorType::pitch)

  // The type of the memory of a holder of values of `type`.
  TensorType MemoryOf(const TensorType& type) const;
};

struct Aliases {
  std::vector<Place> places;  // of each value
  std::vector<bool> idle;     // of each instruction: whether nothing is left for it to do
};

Aliases FindAliases(const Program& program);

}  // namespace syntra
