// SPDX-License-Identifier: Apache-2.0
// Products of large tiles. A block of four warps computes 128 x 128 elements, each warp 64 x 64 of
// them, while a pipeline of asynchronous copies loads pieces of both operands. bf16 uses tensor
// cores, f32 IEEE f32 arithmetic.
#pragma once

#include "kernels/cuda/mma.h"

namespace syntra::gpu {

inline constexpr int kSide = 128, kWarpSide = 64;
inline constexpr int kProductThreads = (kSide / kWarpSide) * (kSide / kWarpSide) * kWarp;
// The number of pieces in shared memory: a copy may take as long as the products of three pieces.
// Two blocks still fit on a multiprocessor of an H100.
inline constexpr int kStages = 4;

// Inner elements of a piece: a multiple of those of one Mma, and rows of 64 bytes.
template <typename T>
inline constexpr int kInner = 64 / static_cast<int>(sizeof(T));

// A piece of an operand, in the operand's own layout: 128 rows of inner elements or, with
// `kAcross`, a row of 128 outer elements for each inner one. Sixteen bytes of padding between rows
// avoid bank conflicts when lanes load a matrix.
template <typename T, bool kAcross>
struct OperandTile {
  static constexpr int kRows = kAcross ? kInner<T> : kSide;
  static constexpr int kColumns = kAcross ? kSide : kInner<T>;
  static constexpr int kStride = kColumns + Line<T>::kElements;
  // A thread copies the same column of every kRowStep-th row.
  static constexpr int kLines = kColumns / Line<T>::kElements;
  static constexpr int kRowStep = kProductThreads / kLines;

  alignas(16) T element[kRows * kStride];

  __device__ static int Row() { return ThreadIndex() / kLines; }
  __device__ static int Column() { return ThreadIndex() % kLines * Line<T>::kElements; }

  __device__ const T* At(int outer, int inner) const {
    return element + (kAcross ? inner * kStride + outer : outer * kStride + inner);
  }

  // Starts to copy the thread's part of the tile. `from` is the thread's column of its first row.
  // Rows are `stride` apart; from row `rows` on they are zero.
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

// sums += A B for one piece of each.
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

// A buffer for a warp's sums, from which they are stored as 16-byte lines. Eight floats of padding
// between rows avoid bank conflicts.
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

// Adds a product of `pieces` pieces to the sums. Product is a struct of the thread with
//   Copy(piece, a, b)       starts the thread's copies of a piece of both operands
//   Add(piece, a, b, sums)  adds their product
// Afterwards the storage is free.
template <typename Stages, typename Product>
__device__ __forceinline__ void Multiply(Stages& stages, int pieces, const Product& product,
                                         WarpSums& sums) {
  const auto copy = [&](int piece) {
    if (piece < pieces) product.Copy(piece, stages.a[piece % kStages], stages.b[piece % kStages]);
    CommitCopies();  // the last groups are empty, so that WaitForCopies always counts the same
  };
  for (int piece = 0; piece < kStages - 1; ++piece) copy(piece);
  for (int piece = 0; piece < pieces; ++piece) {
    WaitForCopies<kStages - 2>();
    // All threads' copies of this piece have completed, and no thread reads the piece before it any
    // more. The next copy overwrites that one.
    SyncThreads();
    copy(piece + kStages - 1);
    product.Add(piece, stages.a[piece % kStages], stages.b[piece % kStages], sums);
  }
  SyncThreads();
}

// The first of the eight columns of the block's tile that StoreSums passes to this lane.
__device__ __forceinline__ int StagedColumn() {
  return WarpColumn() + LaneIndex() % (kWarpSide / kEight) * kEight;
}

// Calls store(row, values) for all rows of the warp's sums, each time with the lane's own columns.
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
