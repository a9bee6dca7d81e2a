// SPDX-License-Identifier: Apache-2.0
// How little work is not worth another thread (ParallelFor).
#pragma once

#include <algorithm>
#include <cstdint>

namespace syntra {

// The least number of elements for one thread. With fewer, waking another thread costs more than it
// saves.
inline constexpr int64_t kGrain = 16384;

// The least number of rows of `width` elements for one thread.
inline int64_t RowGrain(int64_t width) {
  return std::max<int64_t>(1, kGrain / std::max<int64_t>(1, width));
}

}  // namespace syntra
