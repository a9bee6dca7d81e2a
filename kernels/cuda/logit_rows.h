// SPDX-License-Identifier: Apache-2.0
// Loops of a block over a row of logits, and the softmax's sum over it in one pass.
#pragma once

#include "kernels/cuda/reduce.h"

namespace syntra::gpu {

// Neighbouring elements that one access moves.
template <typename T, int kCount>
struct alignas(kCount * sizeof(T)) Pack {
  T element[kCount];

  __device__ __forceinline__ static Pack Load(const T* from) {
    return *reinterpret_cast<const Pack*>(from);
  }
  __device__ __forceinline__ void Store(T* to) const { *reinterpret_cast<Pack*>(to) = *this; }
};

// Calls body.operator()<kCount>(j) for packs of a row's elements, [j, j + kCount). Neighbouring
// threads have neighbouring packs: of four where all rows begin at multiples of 16 bytes, else of
// one.
template <int kCount, typename Body>
__device__ __forceinline__ void PacksOf(int64_t count, const Body& body) {
#pragma unroll 2
  for (int64_t j = ThreadIndex() * kCount; j < count; j += kThreads * kCount) {
    body.template operator()<kCount>(j);
  }
}
template <typename Body>
__device__ __forceinline__ void PacksOf(int64_t count, const Body& body) {
  constexpr int kFour = 4;
  if (count % kFour == 0) {
    PacksOf<kFour>(count, body);
  } else {
    PacksOf<1>(count, body);
  }
}

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
  PacksOf(count, [&]<int kCount>(int64_t j) {
    const auto pack = Pack<float, kCount>::Load(logits + j);
    float top = largest;
#pragma unroll
    for (int k = 0; k < kCount; ++k) top = fmaxf(top, pack.element[k]);
    if (top > largest) exponentials *= expf(largest - top);
    largest = top;
#pragma unroll
    for (int k = 0; k < kCount; ++k) {
      exponentials += expf(pack.element[k] - largest);
      sum += pack.element[k];
    }
  });
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
