// SPDX-License-Identifier: Apache-2.0
// Sums that depend only on the operand, bit for bit. The operand's shape determines the parts. Each
// part is summed, then the parts in order. No atomics.
#pragma once

#include "base/divide.h"
#include "kernels/cuda/launch.h"

namespace syntra::gpu {

// The number of parts for a sum over rows. A block sums each part.
inline constexpr int64_t kMostParts = 264;
inline int64_t PartsOf(int64_t rows) { return std::clamp<int64_t>(rows / 16, 1, kMostParts); }

// Threads of a block that sums few columns of many rows: many, as each waits for memory.
inline constexpr int kColumnThreads = 512;

struct ColumnStorage {
  float sum[kColumnThreads / kWarp][kWarp];
};

// Adds term(i) to `sum` for i = first, first + step and so on below `end`, in this order. Loads
// kAtOnce terms before it adds them: they wait for memory together. The compiler, which does not
// know how many there are, would wait for each.
template <int kAtOnce, typename Term>
__device__ __forceinline__ void AddTerms(int64_t first, int64_t end, int64_t step, const Term& term,
                                         float& sum) {
  for (; first < end; first += kAtOnce * step) {
    float terms[kAtOnce];
#pragma unroll
    for (int n = 0; n < kAtOnce; ++n) {
      terms[n] = first + n * step < end ? term(first + n * step) : 0.0f;
    }
#pragma unroll
    for (const float each : terms) sum += each;
  }
}

// The sum of the values that the lanes with the same index have in all warps of the block, in a
// fixed order. The first warp gets it.
__device__ inline float SumOverWarps(float value, ColumnStorage& storage) {
  storage.sum[WarpIndex()][LaneIndex()] = value;
  SyncThreads();
  float total = 0.0f;
  for (int warp = 0; warp < WarpCount() && WarpIndex() == 0; ++warp) {
    total += storage.sum[warp][LaneIndex()];
  }
  return total;
}

// result[j] (+)= sum over parts of partial[part, j]. The lanes of a warp have 32 columns, each of
// the block's warps sums every n-th part, where n is the number of warps.
template <typename Result>
__global__ void SumPartsKernel(const float* partial, int64_t parts, int64_t width, Result* result,
                               bool accumulate) {
  constexpr int kWarps = kColumnThreads / kWarp;
  constexpr auto kAtOnce = static_cast<int>(DivideUp(kMostParts, kWarps));
  const int64_t column = BlockIndex() * kWarp + LaneIndex();
  float sum = 0.0f;
  if (column < width) {
    AddTerms<kAtOnce>(
        WarpIndex(), parts, kWarps, [&](int64_t part) { return partial[part * width + column]; },
        sum);
  }
  const float total = SumOverWarps(sum, Shared<ColumnStorage>());
  if (WarpIndex() != 0 || column >= width) return;
  StoreResult(total, result + column, accumulate);
}

template <typename Result>
void SumParts(const KernelArguments& call, const float* partial, int64_t parts, int64_t width,
              Result* result, bool accumulate) {
  Launch(call, {DivideUp(width, kWarp), kColumnThreads, sizeof(ColumnStorage)},
         SumPartsKernel<Result>, partial, parts, width, result, accumulate);
}

// The largest number of parts of a sum over elements.
inline constexpr int64_t kElementParts = 512;

struct SumStorage {
  double of_warp[kThreads / kWarp];
};

__host__ __device__ inline int64_t ElementPartsOf(int64_t count) {
  const int64_t parts = count / kThreads;
  return parts < 1 ? 1 : parts > kElementParts ? kElementParts : parts;
}

// The sum of term(i) over a block's part of the elements [0, count).
template <typename Term>
__device__ double SumOfPart(int64_t count, const Term& term, Part part, SumStorage& storage) {
  double sum = 0.0;
  const int64_t stride = part.count * ThreadCount();
  for (int64_t i = part.index * ThreadCount() + ThreadIndex(); i < count; i += stride)
    sum += term(i);
  return BlockSum(sum, storage.of_warp);
}

// The sum of all parts, computed by one block.
__device__ inline double SumOfParts(const double* partial, int64_t parts, SumStorage& storage) {
  double sum = 0.0;
  for (int64_t part = ThreadIndex(); part < parts; part += ThreadCount()) sum += partial[part];
  return BlockSum(sum, storage.of_warp);
}

// The product of two elements, in double.
template <typename A, typename B>
struct ProductTerm {
  const A* a;
  const B* b;
  __device__ double operator()(int64_t i) const {
    return static_cast<double>(ToFloat(a[i])) * static_cast<double>(ToFloat(b[i]));
  }
};

}  // namespace syntra::gpu
