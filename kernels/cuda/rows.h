// SPDX-License-Identifier: Apache-2.0
// A loop over the rows of a matrix in which a thread handles eight columns at a time.
#pragma once

#include "base/divide.h"
#include "kernels/cuda/launch.h"

namespace syntra::gpu {

// Calls body(row, column, n) for a block's part of the pieces of n <= 8 columns that cover all
// rows.
template <typename Body>
__device__ __forceinline__ void ForPieces(int64_t rows, int64_t width, Part part,
                                          const Body& body) {
  const int64_t pieces = DivideUp(width, kEight), stride = part.count * ThreadCount();
  for (int64_t item = part.index * ThreadCount() + ThreadIndex(); item < rows * pieces;
       item += stride) {
    const int64_t column = item % pieces * kEight;
    body(item / pieces, column,
         static_cast<int>(width - column < kEight ? width - column : kEight));
  }
}

// As ForPieces, for all blocks of the grid, each with its part.
template <typename Body>
__global__ void RowwiseKernel(int64_t rows, int64_t width, Body body) {
  ForPieces(rows, width, {BlockIndex(), BlockCount()}, body);
}

// Body: a struct with a __device__ operator()(int64_t row, int64_t column, int n) const.
template <typename Body>
void Rowwise(const KernelArguments& call, int64_t rows, int64_t width, const Body& body) {
  if (rows * width == 0) return;
  const int64_t items = rows * DivideUp(width, kEight);
  Launch(call, GridFor(items), RowwiseKernel<Body>, rows, width, body);
}

}  // namespace syntra::gpu
