// SPDX-License-Identifier: Apache-2.0
// Tiles of attention's operands in shared memory, 64 columns wide, and a warp's products with them.
// A block keeps a tile of rows of one side of the scores (its own rows) and loops over tiles of the
// other side (the passing rows). A warp's sums stay in registers from one product to the next. bf16
// uses tensor cores, f32 IEEE f32 arithmetic.
#pragma once

#include "base/divide.h"
#include "kernels/cuda/mma.h"

namespace syntra::attention {

using namespace gpu;

constexpr int kTileWarps = 4, kTileThreads = kTileWarps * kWarp;
constexpr int kColumns = 64, kFragments = kColumns / 8;  // of a tile
// Sixteen bytes of padding between rows avoid bank conflicts when lanes load a matrix.
template <typename T>
constexpr int kTileStride = kColumns + Line<T>::kElements;

// The number of rows of a passing tile.
template <typename T>
constexpr int kPassing = sizeof(T) == sizeof(float) ? 32 : 64;
template <typename T>
constexpr int kPassingFragments = kPassing<T> / 8;
// The elements of a passing tile, and of a block's own tile whose warps have 16 kM rows each.
template <typename T>
constexpr int kPassingTile = kPassing<T>* kTileStride<T>;
template <typename T, int kM>
constexpr int kOwnTile = kTileWarps * 16 * kM* kTileStride<T>;

constexpr int64_t Chunks(int64_t count) { return DivideUp(count, kColumns); }

// The rows of an operand for one head of one example.
template <typename T>
struct Source {
  const T* from = nullptr;  // the first row; null: the operand is absent
  int rows = 0, width = 0;
  int stride = 0;                  // elements between rows
  const int32_t* index = nullptr;  // row i is stored as row index[i]; null: as row i

  __device__ int TileCount() const { return from == nullptr ? 0 : DivideUp(width, kColumns); }
};

// Starts to copy 64 columns of kRows rows to a tile. Elements beyond the operand become zero. All
// threads of the block must call it. Rows that do not begin at multiples of 16 bytes are copied
// synchronously.
template <int kRows, typename T>
__device__ __forceinline__ void CopyTile(const Source<T>& source, int first, int column, T* tile) {
  constexpr int kElements = Line<T>::kElements, kLines = kColumns / kElements;
  constexpr int kStep = kTileThreads / kLines;  // the rows that the block copies at once
  const int line = ThreadIndex() % kLines * kElements, left = source.width - column - line;
  const int own = first + ThreadIndex() / kLines;
  const int rows = left > 0 ? source.rows - own : 0;
  const bool aligned = source.width % kElements == 0;
  const T* from = source.from + column + line;
  T* to = tile + ThreadIndex() / kLines * kTileStride<T> + line;
  if (aligned && source.index == nullptr) {
    from += int64_t{own} * source.stride;
#pragma unroll
    for (int row = 0; row < kRows; row += kStep) {
      CopyAsync(to + row * kTileStride<T>, from, row < rows);
      from += kStep * source.stride;
    }
    return;
  }
#pragma unroll 1  // rare; unrolling it would only take time to compile
  for (int row = 0; row < kRows; row += kStep) {
    const bool there = row < rows;
    const int stored = there && source.index != nullptr ? source.index[own + row] : own + row;
    const T* stored_row = from + int64_t{stored} * source.stride;
    if (aligned) {
      CopyAsync(to, stored_row, there);
    } else {
#pragma unroll 1
      for (int e = 0; e < kElements; ++e) {
        to[e] = there && e < left ? stored_row[e] : FromFloat<T>(0.0f);
      }
    }
    to += kStep * kTileStride<T>;
  }
}

// As CopyTile, for all columns of the operand, tile after tile. Returns the address after the last
// tile.
template <int kRows, typename T>
__device__ __forceinline__ T* CopyTiles(const Source<T>& source, int first, T* to) {
  for (int tile = 0; tile < source.TileCount(); ++tile) {
    CopyTile<kRows>(source, first, tile * kColumns, to);
    to += kRows * kTileStride<T>;
  }
  return to;
}

// The first row of this warp in the block's own tile. Each warp has 16 kM rows.
template <int kM, typename T>
__device__ __forceinline__ T* WarpRows(T* tile) {
  return tile + WarpIndex() * 16 * kM * kTileStride<T>;
}

// sums[m][n] += (own rows from 16 m on) . (passing rows from 8 n on), over the columns of a tile.
// From `columns` on they are zero on one side.
template <int kM, int kN>
__device__ __forceinline__ void AddScores(const BFloat16* own, const BFloat16* passing,
                                          Fragment (&sums)[kM][kN], int columns = kColumns) {
  constexpr int kStride = kTileStride<BFloat16>;
#pragma unroll
  for (int k = 0; k < kColumns; k += 16) {
    if (k >= columns) break;
    FragmentA rows[kM];
#pragma unroll
    for (int m = 0; m < kM; ++m) {
      LoadOperand<true, false>(own + 16 * m * kStride + k, kStride, rows[m].pair);
    }
#pragma unroll
    for (int n = 0; n < kN; n += 2) {
      uint32_t pair[4];
      LoadOperand<false, false>(passing + 8 * n * kStride + k, kStride, pair);
#pragma unroll
      for (int m = 0; m < kM; ++m) {
        Mma(sums[m][n], rows[m], {pair[0], pair[1]});
        Mma(sums[m][n + 1], rows[m], {pair[2], pair[3]});
      }
    }
  }
}

// Sums sixteen columns at a time before adding them, so that large scores keep their last bits.
template <int kM, int kN>
__device__ __forceinline__ void AddScores(const float* own, const float* passing,
                                          Fragment (&sums)[kM][kN], int columns = kColumns) {
  constexpr int kStride = kTileStride<float>, kApart = 16;
#pragma unroll 1
  for (int first = 0; first < kColumns && first < columns; first += kApart) {
    Fragment part[kM][kN] = {};
#pragma unroll 4
    for (int k = first; k < first + kApart; ++k) {
      float column[kN][2];
#pragma unroll
      for (int n = 0; n < kN; ++n) {
        column[n][0] = passing[(8 * n + FragmentColumn(0)) * kStride + k];
        column[n][1] = passing[(8 * n + FragmentColumn(1)) * kStride + k];
      }
#pragma unroll
      for (int m = 0; m < kM; ++m) {
        const float row[] = {own[(16 * m + FragmentRow(0)) * kStride + k],
                             own[(16 * m + FragmentRow(2)) * kStride + k]};
#pragma unroll
        for (int n = 0; n < kN; ++n) {
#pragma unroll
          for (int i = 0; i < 4; ++i) part[m][n].sum[i] += row[i / 2] * column[n][i % 2];
        }
      }
    }
#pragma unroll
    for (int m = 0; m < kM; ++m) {
#pragma unroll
      for (int n = 0; n < kN; ++n) {
#pragma unroll
        for (int i = 0; i < 4; ++i) sums[m][n].sum[i] += part[m][n].sum[i];
      }
    }
  }
}

// sums[m][c] += (weights of the warp's own rows) times (columns from 8 c on of the passing rows).
// Only the first `columns` need to be summed.
template <int kM, int kN>
__device__ __forceinline__ void AddMixed(const Fragment (&weights)[kM][kN], const BFloat16* passing,
                                         Fragment (&sums)[kM][kFragments], int columns = kColumns) {
  constexpr int kStride = kTileStride<BFloat16>;
#pragma unroll
  for (int k = 0; k < kN; k += 2) {
    FragmentA rows[kM];
#pragma unroll
    for (int m = 0; m < kM; ++m) rows[m] = RowsOf(weights[m][k], weights[m][k + 1]);
#pragma unroll
    for (int c = 0; c < kFragments; c += 2) {
      if (8 * c >= columns) break;
      uint32_t pair[4];
      LoadOperand<false, true>(passing + 8 * k * kStride + 8 * c, kStride, pair);
#pragma unroll
      for (int m = 0; m < kM; ++m) {
        Mma(sums[m][c], rows[m], {pair[0], pair[1]});
        Mma(sums[m][c + 1], rows[m], {pair[2], pair[3]});
      }
    }
  }
}

// Four lanes share the weights of a row and exchange them by shuffles.
template <int kM, int kN>
__device__ __forceinline__ void AddMixed(const Fragment (&weights)[kM][kN], const float* passing,
                                         Fragment (&sums)[kM][kFragments], int columns = kColumns) {
#pragma unroll
  for (int n = 0; n < kN; ++n) {
    // An iteration has enough work; unrolling would only fill the instruction cache.
#pragma unroll 1
    for (int lane = 0; lane < 4; ++lane) {
#pragma unroll
      for (int odd = 0; odd < 2; ++odd) {
        const float* mixed = passing + (8 * n + 2 * lane + odd) * kTileStride<float>;
#pragma unroll
        for (int m = 0; m < kM; ++m) {
          const int from = LaneIndex() / 4 * 4 + lane;
          const float row[] = {ShuffleFrom(weights[m][n].sum[odd], from),
                               ShuffleFrom(weights[m][n].sum[odd + 2], from)};
#pragma unroll
          for (int c = 0; c < kFragments; ++c) {
            if (8 * c >= columns) break;
#pragma unroll
            for (int i = 0; i < 4; ++i) {
              sums[m][c].sum[i] += row[i / 2] * mixed[8 * c + FragmentColumn(i)];
            }
          }
        }
      }
    }
  }
}

// A buffer for 16 rows of a warp's sums, from which they are stored as 16-byte lines.
constexpr int kSumsStride = kColumns + 8;
struct SumsBuffer {
  alignas(16) float element[16 * kSumsStride];
};
struct RowsOfSums {
  SumsBuffer of_warp[kTileWarps];
};

// Calls store(row, column, values) for each eight columns of 16 rows of sums.
template <int kN, typename Store>
__device__ __forceinline__ void StoreRowsOfSums(SumsBuffer& staged, const Fragment (&sums)[kN],
                                                const Store& store) {
  constexpr int kRowsAtOnce = kWarp / kN;
  float* own = staged.element;
  SyncWarp();  // all lanes have read the previous sums
#pragma unroll
  for (int n = 0; n < kN; ++n) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      own[FragmentRow(i) * kSumsStride + 8 * n + FragmentColumn(i)] = sums[n].sum[i];
    }
  }
  SyncWarp();
  const int column = LaneIndex() % kN * kEight;
#pragma unroll
  for (int row = LaneIndex() / kN; row < 16; row += kRowsAtOnce) {
    store(row, column, LoadWholeEight(own + row * kSumsStride + column));
  }
}

// The rows of a result for one head of one example.
template <typename T>
struct Target {
  T* to;  // the first row
  int rows, width;
  int stride;  // elements between rows
  bool accumulate;
};

// Stores the sums of the warp's own rows to 64 columns of rows from `row` on.
template <int kN, typename T>
__device__ __forceinline__ void StoreTile(SumsBuffer& staged, const Fragment (&sums)[kN],
                                          const Target<T>& target, int row, int column) {
  StoreRowsOfSums(staged, sums, [&](int own, int piece, const Eight& values) {
    const int left = target.width - column - piece;
    if (row + own >= target.rows || left <= 0) return;
    StoreResult(values, target.to + int64_t{row + own} * target.stride + column + piece,
                left < kEight ? left : kEight, target.accumulate);
  });
}

// Loops over the passing tiles, double-buffered if there are two stages of memory. All threads of
// the block must call it, and must not use the stages' memory themselves. `pass` has
//   bool Find()        finds the next tiles; false: no more tiles
//   void Copy(stage)   starts the thread's copies of the tiles found last
//   void Prepare()     work for the tiles found last that does not need their copies
//   void Use(stage)    the work that needs them
// Afterwards all copies of the block have completed and the stages are free.
template <typename Pass>
__device__ __forceinline__ void PassStages(int stages, Pass& pass) {
  bool more = pass.Find();
  if (more) pass.Copy(0);
  CommitCopies();
  for (int tile = 0; more; ++tile) {
    pass.Prepare();
    more = pass.Find();  // its loads take no longer than the copies
    WaitForCopies<0>();
    // All threads' copies have completed, and no thread uses the previous stage any more.
    SyncThreads();
    if (stages == 2) {
      if (more) pass.Copy((tile + 1) % 2);
      CommitCopies();
    }
    pass.Use(stages == 2 ? tile % 2 : 0);  // called in one place, because it is long
    if (stages == 1) {
      SyncThreads();
      if (more) pass.Copy(0);
      CommitCopies();
    }
  }
  WaitForCopies<0>();
  SyncThreads();
}

}  // namespace syntra::attention
