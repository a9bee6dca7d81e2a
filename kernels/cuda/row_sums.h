// SPDX-License-Identifier: Apache-2.0
// The softmax's sum over a row of logits, by one block in one pass.
#pragma once

#include "kernels/cuda/reduce.h"

namespace syntra::gpu {

struct RowStorage {
  float largest[kThreads / kWarp], exponentials[kThreads / kWarp], logits[kThreads / kWarp];
};

struct RowSums {
  float log_z, logits;  // logits: their sum, for label smoothing
};

// log_z of the row from one pass: each thread keeps the largest of its logits and the exponentials
// relative to it.
__device__ inline RowSums SumRow(const float* logits, int64_t count) {
  auto& shared = Shared<RowStorage>();
  float largest = -INFINITY, exponentials = 0.0f, sum = 0.0f;
  for (int64_t j = ThreadIndex() * kEight; j < count; j += kThreads * kEight) {
    const int here = static_cast<int>(count - j < kEight ? count - j : kEight);
    const Eight value = LoadEight(logits + j, here);
    float top = largest;
    for (int k = 0; k < here; ++k) top = fmaxf(top, value[k]);
    if (top > largest) exponentials *= expf(largest - top);
    largest = top;
    for (int k = 0; k < here; ++k) {
      exponentials += expf(value[k] - largest);
      sum += value[k];
    }
  }
  const float of_warp = WarpMax(largest);
  if (LaneIndex() == 0) shared.largest[WarpIndex()] = of_warp;
  SyncThreads();
  float of_block = shared.largest[0];
  for (int warp = 1; warp < WarpCount(); ++warp) of_block = fmaxf(of_block, shared.largest[warp]);
  // A thread without logits has nothing to scale.
  if (largest > -INFINITY) exponentials *= expf(largest - of_block);
  exponentials = BlockSum(exponentials, shared.exponentials);
  return {of_block + logf(exponentials), BlockSum(sum, shared.logits)};
}

}  // namespace syntra::gpu
