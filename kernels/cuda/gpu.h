// SPDX-License-Identifier: Apache-2.0
// The language of GPU kernels: CUDA's threads, warps and barriers under names of their own, so that
// the same sources also run on the host, fiber by fiber (tests/simt). Blocks and grids have one
// dimension; a block's threads are a multiple of a warp.
#pragma once

#include <cmath>
#include <cstdint>

#include "core/tensor.h"

#if defined(__CUDACC__)
#include <cuda_bf16.h>
#else
#include "kernels/bfloat16.h"
#include "simt/simt.h"
#endif

namespace syntra::gpu {

inline constexpr int kWarp = 32;
inline constexpr uint32_t kAllLanes = 0xFFFFFFFF;
// Moved by one asynchronous copy, from and to multiples of as many.
inline constexpr size_t kCopyBytes = 16;

#if defined(__CUDACC__)

__device__ __forceinline__ int ThreadIndex() { return static_cast<int>(threadIdx.x); }
__device__ __forceinline__ int ThreadCount() { return static_cast<int>(blockDim.x); }
__device__ __forceinline__ int64_t BlockIndex() { return blockIdx.x; }
__device__ __forceinline__ int64_t BlockCount() { return gridDim.x; }
__device__ __forceinline__ void SyncThreads() { __syncthreads(); }
__device__ __forceinline__ void SyncWarp() { __syncwarp(); }

// The value of another lane of the warp; all lanes must take part.
template <typename T>
__device__ __forceinline__ T ShuffleFrom(T value, int lane) {
  return __shfl_sync(kAllLanes, value, lane);
}
template <typename T>
__device__ __forceinline__ T ShuffleXor(T value, int mask) {
  return __shfl_xor_sync(kAllLanes, value, mask);
}

__device__ __forceinline__ std::byte* SharedBytes() {
  extern __shared__ __align__(128) std::byte memory[];
  return memory;
}

__device__ __forceinline__ uint32_t SharedAddress(const void* pointer) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(pointer));
}
// Copies kCopyBytes of global memory, or zeros if they are not there, to shared memory. The copy is
// under way until the thread waits for the group of copies that it commits it with, and other
// threads' copies until a barrier after their wait.
__device__ __forceinline__ void CopyAsync(void* to, const void* from, bool there) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(SharedAddress(to)),
               "l"(__cvta_generic_to_global(from)), "r"(there ? 16 : 0)
               : "memory");
}
__device__ __forceinline__ void CommitCopies() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}
// Waits for the copies of all groups that this thread has committed, but for the last kLeft.
template <int kLeft>
__device__ __forceinline__ void WaitForCopies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kLeft) : "memory");
}

// 2 to a power, to two units in the last place; results below 2^-126 are zero.
__device__ __forceinline__ float Exp2(float power) {
  float result;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(power));
  return result;
}

__device__ __forceinline__ BFloat16 ToBFloat16(float value) {
  return {__bfloat16_as_ushort(__float2bfloat16_rn(value))};
}
__device__ __forceinline__ float ToFloat(BFloat16 value) {
  return __uint_as_float(static_cast<uint32_t>(value.bits) << 16);
}

#else

inline int ThreadIndex() { return simt::ThreadIndex(); }
inline int ThreadCount() { return simt::ThreadCount(); }
inline int64_t BlockIndex() { return simt::BlockIndex(); }
inline int64_t BlockCount() { return simt::BlockCount(); }
inline void SyncThreads() { simt::SyncThreads(); }
inline void SyncWarp() { simt::Exchange(kAllLanes, nullptr, 0); }

template <typename T>
T ShuffleFrom(T value, int lane) {
  return simt::ShuffleFrom(kAllLanes, value, lane);
}
template <typename T>
T ShuffleXor(T value, int mask) {
  return simt::ShuffleFrom(kAllLanes, value, simt::ThreadIndex() % kWarp ^ mask);
}

inline std::byte* SharedBytes() { return simt::SharedMemory(); }

inline void CopyAsync(void* to, const void* from, bool there) {
  simt::CopyAsync(to, there ? from : nullptr);
}
inline void CommitCopies() { simt::CommitCopies(); }
template <int kLeft>
void WaitForCopies() {
  simt::WaitForCopies(kLeft);
}

inline float Exp2(float power) { return std::exp2(power); }

using syntra::ToBFloat16;
using syntra::ToFloat;

#endif

__device__ __forceinline__ int LaneIndex() { return ThreadIndex() % kWarp; }
__device__ __forceinline__ int WarpIndex() { return ThreadIndex() / kWarp; }
__device__ __forceinline__ int WarpCount() { return ThreadCount() / kWarp; }

// The block's shared memory as a kernel's own struct; its size is part of the launch.
template <typename Storage>
__device__ __forceinline__ Storage& Shared() {
  return *reinterpret_cast<Storage*>(SharedBytes());
}

__device__ __forceinline__ float ToFloat(float value) { return value; }

template <typename T>
__device__ __forceinline__ T FromFloat(float value) {
  if constexpr (sizeof(T) == sizeof(float)) {
    return value;
  } else {
    return ToBFloat16(value);
  }
}

// Sums over the lanes of a warp, in a fixed order; every lane has the result.
template <typename T>
__device__ __forceinline__ T WarpSum(T value) {
  for (int mask = kWarp / 2; mask > 0; mask /= 2) value += ShuffleXor(value, mask);
  return value;
}
__device__ __forceinline__ float WarpMax(float value) {
  for (int mask = kWarp / 2; mask > 0; mask /= 2) value = fmaxf(value, ShuffleXor(value, mask));
  return value;
}

// The sum over the threads of a block, in a fixed order; every thread has the result. `scratch`:
// shared, a value for each warp; the block must have passed a barrier since it was used before.
template <typename T>
__device__ __forceinline__ T BlockSum(T value, T* scratch) {
  value = WarpSum(value);
  if (LaneIndex() == 0) scratch[WarpIndex()] = value;
  SyncThreads();
  T sum = 0;
  for (int warp = 0; warp < WarpCount(); ++warp) sum += scratch[warp];
  return sum;
}

// Elements that a thread moves at once: one access of 16 bytes in bf16, two in f32.
inline constexpr int kEight = 8;

struct Eight {
  float value[kEight];

  __device__ __forceinline__ float& operator[](int i) { return value[i]; }
  __device__ __forceinline__ float operator[](int i) const { return value[i]; }
};

// Sixteen bytes of elements, as one access moves them.
template <typename T>
struct alignas(16) Line {
  static constexpr int kElements = 16 / static_cast<int>(sizeof(T));
  T element[kElements];
};

__device__ __forceinline__ bool IsAligned(const void* pointer) {
  return (reinterpret_cast<uintptr_t>(pointer) & 15) == 0;
}

// Eight elements from a multiple of 16 bytes on.
template <typename T>
__device__ __forceinline__ Eight LoadWholeEight(const T* from) {
  constexpr int kElements = Line<T>::kElements;
  Eight result;
#pragma unroll
  for (int part = 0; part < kEight / kElements; ++part) {
    const Line<T> line = reinterpret_cast<const Line<T>*>(from)[part];
#pragma unroll
    for (int i = 0; i < kElements; ++i) {
      result[part * kElements + i] = ToFloat(line.element[i]);
    }
  }
  return result;
}

template <typename T>
__device__ __forceinline__ void StoreWholeEight(const Eight& values, T* to) {
  constexpr int kElements = Line<T>::kElements;
#pragma unroll
  for (int part = 0; part < kEight / kElements; ++part) {
    Line<T> line;
#pragma unroll
    for (int i = 0; i < kElements; ++i) {
      line.element[i] = FromFloat<T>(values[part * kElements + i]);
    }
    reinterpret_cast<Line<T>*>(to)[part] = line;
  }
}

// The first `count` of eight elements, wherever they lie; the rest are zero.
template <typename T>
__device__ __forceinline__ Eight LoadEight(const T* from, int count) {
  if (count == kEight && IsAligned(from)) return LoadWholeEight(from);
  Eight result;
#pragma unroll
  for (int i = 0; i < kEight; ++i) result[i] = i < count ? ToFloat(from[i]) : 0.0f;
  return result;
}

template <typename T>
__device__ __forceinline__ void StoreEight(const Eight& values, T* to, int count) {
  if (count == kEight && IsAligned(to)) return StoreWholeEight(values, to);
    // Indices that are known keep the values in registers.
#pragma unroll
  for (int i = 0; i < kEight; ++i) {
    if (i < count) to[i] = FromFloat<T>(values[i]);
  }
}

// Stores the values, or adds them to what is there.
template <typename T>
__device__ __forceinline__ void StoreResult(Eight values, T* to, int count, bool accumulate) {
  if (accumulate) {
    const Eight before = LoadEight(to, count);
#pragma unroll
    for (int i = 0; i < kEight; ++i) values[i] += before[i];
  }
  StoreEight(values, to, count);
}

template <typename T>
__device__ __forceinline__ void StoreResult(float value, T* to, bool accumulate) {
  *to = FromFloat<T>(accumulate ? value + ToFloat(*to) : value);
}

}  // namespace syntra::gpu
