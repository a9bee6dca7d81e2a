// SPDX-License-Identifier: Apache-2.0
// The primitives of GPU kernels: wrappers of CUDA's threads, warps and barriers. With them the same
// sources also run on the host, with a fiber for each thread (tests/simt). Blocks and grids have
// one dimension. The number of threads of a block is a multiple of a warp.
#pragma once

#include <bit>
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
// The bytes that one asynchronous copy moves. Both addresses are multiples of this number.
inline constexpr size_t kCopyBytes = 16;

#if defined(__CUDACC__)

__device__ __forceinline__ int ThreadIndex() { return static_cast<int>(threadIdx.x); }
__device__ __forceinline__ int ThreadCount() { return static_cast<int>(blockDim.x); }
__device__ __forceinline__ int64_t BlockIndex() { return blockIdx.x; }
__device__ __forceinline__ int64_t BlockCount() { return gridDim.x; }
// Barriers of the block and of the warp. Nothing else orders memory between threads.
__device__ __forceinline__ void SyncThreads() { __syncthreads(); }
__device__ __forceinline__ void SyncWarp() { __syncwarp(); }

// The value of another lane of the warp. All lanes must call it. It orders no memory.
template <typename T>
__device__ __forceinline__ T ShuffleFrom(T value, int lane) {
  return __shfl_sync(kAllLanes, value, lane);
}
template <typename T>
__device__ __forceinline__ T ShuffleXor(T value, int mask) {
  return __shfl_xor_sync(kAllLanes, value, mask);
}

__device__ __forceinline__ std::byte* SharedBytes() {
  extern __shared__ __align__(1024) std::byte memory[];
  return memory;
}

__device__ __forceinline__ uint32_t SharedAddress(const void* pointer) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(pointer));
}
// Starts to copy kCopyBytes from global memory, or zeros if `there` is false, to shared memory. The
// copy is complete for this thread once it has committed the copy's group and waited for it, and
// for other threads after a barrier that follows the wait.
__device__ __forceinline__ void CopyAsync(void* to, const void* from, bool there) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(SharedAddress(to)),
               "l"(__cvta_generic_to_global(from)), "r"(there ? 16 : 0)
               : "memory");
}
__device__ __forceinline__ void CommitCopies() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}
// Waits for all copy groups that this thread has committed, except the last kLeft.
template <int kLeft>
__device__ __forceinline__ void WaitForCopies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kLeft) : "memory");
}

// The number of the lowest bit that is set; there must be one.
__device__ __forceinline__ int LowestBit(uint64_t bits) {
  return __ffsll(static_cast<long long>(bits)) - 1;
}

// Makes the compiler forget what it knows of a number, so that it computes anew what depends on it
// instead of keeping that in registers.
template <typename T>
__device__ __forceinline__ void Forget(T& number) {
  static_assert(sizeof(T) == 4);
  asm volatile("" : "+r"(number));
}

// 2^power with an error of at most two units in the last place. Results below 2^-126 are zero.
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
inline void SyncWarp() { simt::SyncWarp(); }

template <typename T>
T ShuffleFrom(T value, int lane) {
  return simt::ShuffleFrom(value, lane);
}
template <typename T>
T ShuffleXor(T value, int mask) {
  return simt::ShuffleFrom(value, simt::ThreadIndex() % kWarp ^ mask);
}

inline std::byte* SharedBytes() { return simt::SharedMemory(); }
inline uint32_t SharedAddress(const void* pointer) { return simt::SharedAddress(pointer); }

inline void CopyAsync(void* to, const void* from, bool there) {
  simt::CopyAsync(to, there ? from : nullptr);
}
inline void CommitCopies() { simt::CommitCopies(); }
template <int kLeft>
void WaitForCopies() {
  simt::WaitForCopies(kLeft);
}

template <typename T>
void Forget(T&) {}
inline int LowestBit(uint64_t bits) { return std::countr_zero(bits); }
inline float Exp2(float power) { return std::exp2(power); }

using syntra::ToBFloat16;
using syntra::ToFloat;

#endif

// Unsigned remainder and quotient: the compiler does not know that the index is not negative, and
// for each of these numbers would compute what they were if it was.
__device__ __forceinline__ int LaneIndex() {
  return static_cast<int>(static_cast<uint32_t>(ThreadIndex()) % kWarp);
}
__device__ __forceinline__ int WarpIndex() {
  return static_cast<int>(static_cast<uint32_t>(ThreadIndex()) / kWarp);
}
__device__ __forceinline__ int WarpCount() { return ThreadCount() / kWarp; }

// The block's shared memory as a struct of the kernel. The launch must reserve its size.
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

// The sum over the lanes of a warp, in a fixed order. Every lane gets the result.
template <typename T>
__device__ __forceinline__ T WarpSum(T value) {
  for (int mask = kWarp / 2; mask > 0; mask /= 2) value += ShuffleXor(value, mask);
  return value;
}
__device__ __forceinline__ float WarpMax(float value) {
  for (int mask = kWarp / 2; mask > 0; mask /= 2) value = fmaxf(value, ShuffleXor(value, mask));
  return value;
}

// The value of the lane `distance` before this one, or 0 if there is none.
__device__ __forceinline__ float ValueBefore(float value, int distance) {
  const float before = ShuffleFrom(value, LaneIndex() >= distance ? LaneIndex() - distance : 0);
  return LaneIndex() >= distance ? before : 0.0f;
}

// The sum of the values of this lane and the lanes before it.
__device__ __forceinline__ float SumToLane(float value) {
  for (int distance = 1; distance < kWarp; distance *= 2) value += ValueBefore(value, distance);
  return value;
}

// The sum over the threads of a block, in a fixed order. Every thread gets the result. `scratch` is
// shared memory with a value for each warp. There must be a barrier between two uses of it.
template <typename T>
__device__ __forceinline__ T BlockSum(T value, T* scratch) {
  value = WarpSum(value);
  if (LaneIndex() == 0) scratch[WarpIndex()] = value;
  SyncThreads();
  T sum = 0;
  for (int warp = 0; warp < WarpCount(); ++warp) sum += scratch[warp];
  return sum;
}

// The number of elements that a thread loads at once: one access of 16 bytes in bf16, two in f32.
inline constexpr int kEight = 8;

struct Eight {
  float value[kEight];

  __device__ __forceinline__ float& operator[](int i) { return value[i]; }
  __device__ __forceinline__ float operator[](int i) const { return value[i]; }
  __device__ __forceinline__ Eight& operator+=(const Eight& other) {
#pragma unroll
    for (int i = 0; i < kEight; ++i) value[i] += other[i];
    return *this;
  }
};

// Sixteen bytes of elements, which one access moves.
template <typename T>
struct alignas(16) Line {
  static constexpr int kElements = 16 / static_cast<int>(sizeof(T));
  T element[kElements];
};

__device__ __forceinline__ bool IsAligned(const void* pointer) {
  return (reinterpret_cast<uintptr_t>(pointer) & 15) == 0;
}

// Loads eight elements from an address that is a multiple of 16 bytes.
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

// Loads `count` <= 8 elements from any address. The rest are zero.
template <typename T>
__device__ __forceinline__ Eight LoadEight(const T* from, int count) {
  if (count == kEight && IsAligned(from)) return LoadWholeEight(from);
  Eight result;
#pragma unroll
  for (int i = 0; i < kEight; ++i) result[i] = i < count ? ToFloat(from[i]) : 0.0f;
  return result;
}

// Loads the same columns of several rows. One question for all of them, before any load, lets the
// loads follow each other.
template <typename T, int kRows>
__device__ __forceinline__ void LoadRows(const T* const (&rows)[kRows], int count,
                                         Eight (&values)[kRows]) {
  bool whole = count == kEight;
#pragma unroll
  for (int i = 0; i < kRows; ++i) whole = whole && IsAligned(rows[i]);
  if (whole) {
#pragma unroll
    for (int i = 0; i < kRows; ++i) values[i] = LoadWholeEight(rows[i]);
    return;
  }
#pragma unroll
  for (int i = 0; i < kRows; ++i) values[i] = LoadEight(rows[i], count);
}

template <typename T>
__device__ __forceinline__ void StoreEight(const Eight& values, T* to, int count) {
  if (count == kEight && IsAligned(to)) return StoreWholeEight(values, to);
    // Indices that the compiler knows keep the values in registers.
#pragma unroll
  for (int i = 0; i < kEight; ++i) {
    if (i < count) to[i] = FromFloat<T>(values[i]);
  }
}

// Stores the values, or adds them to those in memory.
template <typename T>
__device__ __forceinline__ void StoreResult(Eight values, T* to, int count, bool accumulate) {
  if (accumulate) values += LoadEight(to, count);
  StoreEight(values, to, count);
}

template <typename T>
__device__ __forceinline__ void StoreResult(float value, T* to, bool accumulate) {
  *to = FromFloat<T>(accumulate ? value + ToFloat(*to) : value);
}

}  // namespace syntra::gpu
