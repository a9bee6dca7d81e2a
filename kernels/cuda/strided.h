// SPDX-License-Identifier: Apache-2.0
// Groups of eight elements that lie a stride apart, and elementwise kernels over strided operands:
// broadcasts and copies.
#pragma once

#include <span>

#include "kernels/cuda/launch.h"
#include "kernels/strided_call.h"

namespace syntra::gpu {

// Elements j .. j + count - 1 of those that begin at `from`; the rest are zero.
template <typename T>
__device__ __forceinline__ Eight LoadStrided(const T* from, int64_t stride, int64_t j, int count) {
  if (stride == 1) return LoadEight(from + j, count);
  Eight result;
#pragma unroll
  for (int k = 0; k < kEight; ++k) result[k] = k < count ? ToFloat(from[(j + k) * stride]) : 0.0f;
  return result;
}

template <typename T>
__device__ __forceinline__ void StoreStrided(const Eight& values, T* to, int64_t stride, int64_t j,
                                             int count, bool accumulate) {
  if (stride == 1) return StoreResult(values, to + j, count, accumulate);
#pragma unroll
  for (int k = 0; k < kEight; ++k) {
    if (k < count) StoreResult(values[k], to + (j + k) * stride, accumulate);
  }
}

// Runs the call. A null `a` stands for zeros. b is not read if the call has none.
void RunStrided(const KernelArguments& arguments, const StridedCall& call, void* y, const void* a,
                const void* b);

// A copy with its source and target addresses. A null `from` stands for zeros.
struct PlacedCopy {
  StridedCall call;
  void* to;
  const void* from;
};

// Runs the copies, with one launch for each run of copies of equal element types.
void RunCopies(const KernelArguments& arguments, std::span<const PlacedCopy> copies);
// Runs copies that all go to `to`; copy i reads from from[i].
void RunCopies(const KernelArguments& arguments, std::span<const StridedCall> copies, void* to,
               std::span<void* const> from);

// Makes this call the kernel of an op: y is output 0, a and b are inputs 0 and 1.
BoundKernel BindStrided(const StridedCall& call);

}  // namespace syntra::gpu
