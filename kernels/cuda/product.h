// SPDX-License-Identifier: Apache-2.0
// Products of large tiles: a block of four warps sums 128 x 128 elements, a warp 64 x 64 of them,
// while pieces of both operands arrive through a pipeline of asynchronous copies. bf16 on tensor
// cores, f32 in IEEE f32.
#pragma once

#include "kernels/cuda/mma.h"

namespace syntra::gpu {

inline constexpr int kSide = 128, kWarpSide = 64;
inline constexpr int kProductThreads = (kSide / kWarpSide) * (kSide / kWarpSide) * kWarp;
// Pieces under way or in use, enough that a copy may take as long as three pieces' products. Two
// blocks still fit a multiprocessor of an H100.
inline constexpr int kStages = 4;

// Inner elements of a piece: a multiple of what one Mma takes, and rows of 64 bytes.
template <typename T>
inline constexpr int kInner = 64 / static_cast<int>(sizeof(T));

// A piece of an operand as it lies in memory: 128 rows of inner elements, or if the operand is
// `kAcross` a row of 128 for each inner element. Sixteen bytes between rows let the lanes that load
// a matrix meet different banks.
template <typename T, bool kAcross>
struct OperandTile {
  static constexpr int kRows = kAcross ? kInner<T> : kSide;
  static constexpr int kColumns = kAcross ? kSide : kInner<T>;
  static constexpr int kStride = kColumns + Line<T>::kElements;
  // A thread copies the same column of rows that are so far apart.
  static constexpr int kLines = kColumns / Line<T>::kElements;
  static constexpr int kRowStep = kProductThreads / kLines;

  alignas(16) T element[kRows * kStride];

  __device__ static int Row() { return ThreadIndex() / kLines; }
  __device__ static int Column() { return ThreadIndex() % kLines * Line<T>::kElements; }

  __device__ const T* At(int outer, int inner) const {
    return element + (kAcross ? inner * kStride + outer : outer * kStride + inner);
  }

  // Copies the thread's part of the tile. `from`: its own column of its first row; rows of the
  // tile, `stride` apart, are zero from `rows` on.
  __device__ __forceinline__ void Copy(const T* from, int64_t stride, int rows) {
    T* to = element + Row() * kStride + Column();
#pragma unroll
    for (int i = 0; i < kRows / kRowStep; ++i) {
      CopyAsync(to + i * kRowStep * kStride, from, Row() + i * kRowStep < rows);
      from += kRowStep * stride;
    }
  }
};

// A warp's 64 x 64 sums: fragment [m][n] begins at row 16 m and column 8 n.
inline constexpr int kWarpRows = kWarpSide / 16, kWarpColumns = kWarpSide / 8;
using WarpSums = Fragment[kWarpRows][kWarpColumns];
__device__ __forceinline__ int WarpRow() { return WarpIndex() / 2 * kWarpSide; }
__device__ __forceinline__ int WarpColumn() { return WarpIndex() % 2 * kWarpSide; }

// sums += A B, of one piece of each.
template <bool kAAcross, bool kBAcross>
__device__ __forceinline__ void AddTiles(const OperandTile<BFloat16, kAAcross>& a,
                                         const OperandTile<BFloat16, kBAcross>& b, WarpSums& sums) {
#pragma unroll
  for (int k = 0; k < kInner<BFloat16>; k += 16) {
    FragmentA rows[kWarpRows];
#pragma unroll
    for (int m = 0; m < kWarpRows; ++m) {
      LoadOperand<true, kAAcross>(a.At(WarpRow() + 16 * m, k), a.kStride, rows[m].pair);
    }
#pragma unroll
    for (int n = 0; n < kWarpColumns; n += 2) {
      uint32_t pair[4];
      LoadOperand<false, kBAcross>(b.At(WarpColumn() + 8 * n, k), b.kStride, pair);
#pragma unroll
      for (int m = 0; m < kWarpRows; ++m) {
        Mma(sums[m][n], rows[m], {pair[0], pair[1]});
        Mma(sums[m][n + 1], rows[m], {pair[2], pair[3]});
      }
    }
  }
}

template <bool kAAcross, bool kBAcross>
__device__ __forceinline__ void AddTiles(const OperandTile<float, kAAcross>& a,
                                         const OperandTile<float, kBAcross>& b, WarpSums& sums) {
  for (int k = 0; k < kInner<float>; ++k) {
    float column[kWarpColumns][2];
#pragma unroll
    for (int n = 0; n < kWarpColumns; ++n) {
      column[n][0] = *b.At(WarpColumn() + 8 * n + FragmentColumn(0), k);
      column[n][1] = *b.At(WarpColumn() + 8 * n + FragmentColumn(1), k);
    }
#pragma unroll
    for (int m = 0; m < kWarpRows; ++m) {
      const float row[] = {*a.At(WarpRow() + 16 * m + FragmentRow(0), k),
                           *a.At(WarpRow() + 16 * m + FragmentRow(2), k)};
#pragma unroll
      for (int n = 0; n < kWarpColumns; ++n) {
#pragma unroll
        for (int i = 0; i < 4; ++i) sums[m][n].sum[i] += row[i / 2] * column[n][i % 2];
      }
    }
  }
}

// Sums on their way to rows of 16-byte lines, eight floats between rows against bank conflicts.
inline constexpr int kStagedStride = kWarpSide + 8;
using StagedSums = float[kWarpSide * kStagedStride];

template <typename T, bool kAAcross, bool kBAcross>
struct ProductStages {
  OperandTile<T, kAAcross> a[kStages];
  OperandTile<T, kBAcross> b[kStages];
};

template <typename T, bool kAAcross, bool kBAcross>
union PipelineStorage {
  ProductStages<T, kAAcross, kBAcross> stages;
  alignas(16) StagedSums sums[kProductThreads / kWarp];
};

// Adds up a product of `steps` pieces. Product: a struct of a thread's own, with
//   Copy(step, a, b)       begins the thread's copies of a piece of both operands
//   Add(step, a, b, sums)  adds their product
// Afterwards the storage is free.
template <typename Stages, typename Product>
__device__ __forceinline__ void Multiply(Stages& stages, int steps, const Product& product,
                                         WarpSums& sums) {
  const auto copy = [&](int step) {
    if (step < steps) product.Copy(step, stages.a[step % kStages], stages.b[step % kStages]);
    CommitCopies();  // empty at the end, so that the wait always counts the same
  };
  for (int step = 0; step < kStages - 1; ++step) copy(step);
  for (int step = 0; step < steps; ++step) {
    WaitForCopies<kStages - 2>();
    // All threads' copies of this piece are there, and nobody reads the piece before it any more,
    // whose place is taken next.
    SyncThreads();
    copy(step + kStages - 1);
    product.Add(step, stages.a[step % kStages], stages.b[step % kStages], sums);
  }
  SyncThreads();
}

// StoreSums gives a lane the eight sums from this column of the block's tile on.
__device__ __forceinline__ int StagedColumn() {
  return WarpColumn() + LaneIndex() % (kWarpSide / kEight) * kEight;
}

// Calls store(row, values) for all rows of the warp's sums and the lane's own columns.
template <typename Store>
__device__ __forceinline__ void StoreSums(StagedSums& staged, const WarpSums& sums,
                                          const Store& store) {
#pragma unroll
  for (int m = 0; m < kWarpRows; ++m) {
#pragma unroll
    for (int n = 0; n < kWarpColumns; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        staged[(16 * m + FragmentRow(i)) * kStagedStride + 8 * n + FragmentColumn(i)] =
            sums[m][n].sum[i];
      }
    }
  }
  SyncWarp();
  constexpr int kRowsAtOnce = kWarp * kEight / kWarpSide;
  const int column = StagedColumn() - WarpColumn();
  for (int row = LaneIndex() / (kWarp / kRowsAtOnce); row < kWarpSide; row += kRowsAtOnce) {
    store(WarpRow() + row, LoadEight(staged + row * kStagedStride + column, kEight));
  }
}

}  // namespace syntra::gpu
