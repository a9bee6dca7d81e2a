// SPDX-License-Identifier: Apache-2.0
// Parts of the batch, for gradients that are sums over the examples. Each block sums over a part of
// the examples; later the sums of the parts are added up.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/divide.h"
#include "kernels/cuda/launch.h"

namespace syntra::attention {

// The first of the `count` examples in part `index`. FirstOfPart(count, index + 1, parts) is the
// end of that part.
__device__ __forceinline__ int FirstOfPart(int count, int index, int parts) {
  const int each = count / parts, rest = count % parts;  // the first parts have one more
  return index * each + (index < rest ? index : rest);
}

// The number of parts with which a kernel takes the least time. It has tiles * parts blocks, of
// which `at_once` run at a time. Such a wave takes as long as a block's examples and `extra` more.
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
