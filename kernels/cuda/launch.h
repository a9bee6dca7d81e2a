// SPDX-License-Identifier: Apache-2.0
// Launches GPU kernels on a call's stream.
#pragma once

#include <algorithm>
#include <tuple>
#include <type_traits>
#include <utility>

#include "base/divide.h"
#include "base/error.h"
#include "core/buffer.h"
#include "kernels/bound_kernel.h"
#include "kernels/cuda/counts.h"
#include "kernels/cuda/gpu.h"

#if defined(__CUDACC__)
#include "kernels/cuda/check.h"
#else
#include "simt/device.h"
#endif

namespace syntra::gpu {

// The most bytes of shared memory that a block may have on this thread's GPU: 163 KiB on sm_80, 99
// on sm_86 and sm_89, 227 on sm_90.
inline size_t MostSharedBytes() {
#if defined(__CUDACC__)
  int gpu = 0, bytes = 0;
  SYNTRA_CUDA(cudaGetDevice(&gpu));
  SYNTRA_CUDA(cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, gpu));
  return static_cast<size_t>(bytes);
#else
  return simt::MostSharedBytes();
#endif
}

// The number of multiprocessors of this thread's GPU: 132 on an H100 or H200 of SXM form.
inline int64_t Multiprocessors() {
#if defined(__CUDACC__)
  int gpu = 0, count = 0;
  SYNTRA_CUDA(cudaGetDevice(&gpu));
  SYNTRA_CUDA(cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, gpu));
  return count;
#else
  return simt::kMultiprocessors;
#endif
}

// The multiprocessors of an H100, for which grids are tuned. They use this number on every GPU, so
// that the order of sums that blocks share does not depend on the GPU.
inline constexpr int64_t kTunedMultiprocessors = 132;

struct Grid {
  int64_t blocks;  // below 2^31
  int threads;
  size_t shared_bytes = 0;  // dynamic shared memory of a block
};

// Launches kernel(arguments...) with the grid on the call's stream. Throws Error(kResources) if
// CUDA refuses the launch.
template <typename... Parameters, typename... Arguments>
void Launch(const KernelArguments& call, const Grid& grid, void (*kernel)(Parameters...),
            Arguments&&... arguments) {
  SYNTRA_CHECK(FitInt({grid.blocks}), "a grid of {} blocks", grid.blocks);
  const std::tuple<std::remove_cvref_t<Parameters>...> values(
      std::forward<Arguments>(arguments)...);
#if defined(__CUDACC__)
  constexpr size_t kAlwaysThere = 48 << 10;
  if (grid.shared_bytes > kAlwaysThere) {
    // The limit is the kernel's, not the launch's. So it must not fall below what an earlier launch
    // has: a captured one may be checked against it when its graph is made.
    SYNTRA_CUDA(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                     static_cast<int>(MostSharedBytes())));
  }
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(static_cast<unsigned>(grid.blocks));
  config.blockDim = dim3(static_cast<unsigned>(grid.threads));
  config.dynamicSmemBytes = grid.shared_bytes;
  config.stream = static_cast<cudaStream_t>(call.stream);
  std::apply(
      [&](const auto&... each) { SYNTRA_CUDA(cudaLaunchKernelEx(&config, kernel, each...)); },
      values);
#else
  simt::Give(call.stream, [grid, kernel, values] {
    simt::Run({grid.blocks, grid.threads, grid.shared_bytes}, [&] { std::apply(kernel, values); });
  });
#endif
}

// The default number of threads of a block, and the largest possible one.
inline constexpr int kThreads = 256, kMostThreads = 1024;

// A grid for a grid-stride loop over `items`, with no more blocks than keep every multiprocessor of
// an H100 busy.
inline Grid GridFor(int64_t items) {
  constexpr int64_t kMostBlocks = 16 * kTunedMultiprocessors;
  const int64_t blocks = DivideUp(items, kThreads);
  return {std::clamp<int64_t>(blocks, 1, kMostBlocks), kThreads};
}

// Calls body(i) for this thread's items of [0, count), which the threads of the grid share.
template <typename Body>
__device__ __forceinline__ void ForThreadItems(int64_t count, const Body& body) {
  const int64_t stride = BlockCount() * ThreadCount();
  for (int64_t i = BlockIndex() * ThreadCount() + ThreadIndex(); i < count; i += stride) body(i);
}

// A block's share of work that is split: part `index` of `count`.
struct Part {
  int64_t index, count;
};

// Calls body(i, n) for pieces [i, i + n) of n <= 8 elements, which cover a block's part of [0,
// count).
template <typename Body>
__device__ void ElementsOf(int64_t count, Part part, const Body& body) {
  const int64_t stride = part.count * ThreadCount() * kEight;
  for (int64_t i = (part.index * ThreadCount() + ThreadIndex()) * kEight; i < count; i += stride) {
    body(i, static_cast<int>(count - i < kEight ? count - i : kEight));
  }
}

// Calls body(i, n) on the device for pieces [i, i + n) of n <= 8 elements, which cover [0, count).
template <typename Body>
__global__ void ElementwiseKernel(int64_t count, Body body) {
  ElementsOf(count, {BlockIndex(), BlockCount()}, body);
}

// Body: a struct of pointers and numbers with a __device__ operator()(int64_t, int) const.
template <typename Body>
void Elementwise(const KernelArguments& call, int64_t count, const Body& body) {
  if (count > 0) {
    Launch(call, GridFor(DivideUp(count, kEight)), ElementwiseKernel<Body>, count, body);
  }
}

}  // namespace syntra::gpu
