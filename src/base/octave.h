// SPDX-License-Identifier: Apache-2.0
// Rounds sizes up so that only four different ones remain between a power of two and the next.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "base/divide.h"

namespace syntra {

// Rounds `count` up to a multiple of a quarter of the power of two below it, or of `step` if that
// is more; but to `most` at most. With step 1: 1 to 8, 10, 12, 14, 16, 20, ...
inline int64_t RoundUpInOctave(int64_t count, int64_t step, int64_t most) {
  const auto octave =
      static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(std::max<int64_t>(count - 1, 1))));
  const int64_t of_octave = std::max(octave / 4, step);
  return std::min(DivideUp(count, of_octave) * of_octave, most);
}

}  // namespace syntra
