// SPDX-License-Identifier: Apache-2.0
// How reductions are split into blocks. Only the operand's shape decides, so that results do not
// depend on the number of threads.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/divide.h"

namespace syntra {

inline constexpr int64_t kElementBlock = 16384;

constexpr int64_t ElementBlocks(int64_t count) { return DivideUp(count, kElementBlock); }

// Splits rows into at most 64 blocks of at least 16 rows.
struct RowBlocks {
  int64_t rows, block, count;

  static constexpr RowBlocks Of(int64_t rows) {
    const int64_t block = std::max<int64_t>(16, DivideUp(rows, 64));
    return {rows, block, DivideUp(rows, block)};
  }
  int64_t begin(int64_t i) const { return i * block; }
  int64_t end(int64_t i) const { return std::min(rows, (i + 1) * block); }
};

}  // namespace syntra
