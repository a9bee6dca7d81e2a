// SPDX-License-Identifier: Apache-2.0
// Parts of the batch. Blocks that sum over examples have a part each, whose sums are added up
// later.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/divide.h"
#include "kernels/cuda/launch.h"

namespace syntra::attention {

// The first of `count` examples that belongs to a part. For index = parts it is the end of the
// last.
__device__ __forceinline__ int FirstOfPart(int count, int index, int parts) {
  const int each = count / parts, rest = count % parts;  // the first parts have one more
  return index * each + (index < rest ? index : rest);
}

// The number of parts with which a kernel takes the least time, if each of `tiles` has a block for
// each part and `at_once` blocks run at a time. A wave of blocks takes the time of a block's
// examples and of `extra` more.
inline int64_t PartsFor(int64_t batch, int64_t tiles, int64_t at_once, int64_t extra) {
  const auto time = [&](int64_t parts) {
    const int64_t waves = DivideUp(tiles * parts, at_once);
    return waves * (DivideUp(batch, parts) + extra);
  };
  int64_t best = 1;
  for (int64_t parts = 2; parts <= batch; ++parts) {
    if (time(parts) < time(best)) best = parts;
  }
  return best;
}

// The number of parts that keeps a GPU busy to the end, for kernels of which nobody knows how many
// blocks run at once.
inline int64_t PartsFor(int64_t batch, int64_t tiles) {
  constexpr int64_t kWaves = 6, kBlocks = 2;  // of a multiprocessor
  return std::clamp<int64_t>(gpu::kTunedMultiprocessors * kBlocks * kWaves / tiles, 1, batch);
}

}  // namespace syntra::attention
