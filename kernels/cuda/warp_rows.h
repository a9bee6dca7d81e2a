// SPDX-License-Identifier: Apache-2.0
// A loop over the rows of a matrix in which a warp handles a row, a lane eight columns at a time.
#pragma once

#include "kernels/cuda/launch.h"

namespace syntra::gpu {

// Calls body(column, n) for this lane's pieces of n <= 8 columns of a row.
template <typename Body>
__device__ void ForEachPiece(int64_t width, const Body& body) {
  for (int64_t column = LaneIndex() * kEight; column < width; column += kWarp * kEight) {
    body(column, static_cast<int>(width - column < kEight ? width - column : kEight));
  }
}

// Calls body(row) on the device with all lanes of a warp, for each row.
template <typename Body>
__global__ void WarpRowsKernel(int64_t rows, Body body) {
  const int64_t stride = BlockCount() * WarpCount();
  for (int64_t row = BlockIndex() * WarpCount() + WarpIndex(); row < rows; row += stride) {
    body(row);
  }
}

// Body: a struct with a __device__ operator()(int64_t row) const.
template <typename Body>
void WarpRows(const KernelArguments& call, int64_t rows, const Body& body) {
  Launch(call, GridFor(rows * kWarp), WarpRowsKernel<Body>, rows, body);
}

}  // namespace syntra::gpu
