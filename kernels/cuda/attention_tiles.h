// SPDX-License-Identifier: Apache-2.0
// Tiles of attention's operands in shared memory, 64 columns wide, and a warp's products with them.
// Of the two sides of the scores a block keeps the rows of one, its own, while those of the other
// pass by; a warp's sums lie in registers, from one product to the next. bf16 on tensor cores, f32
// in IEEE f32.
#pragma once

#include "kernels/cuda/mma.h"

namespace syntra::attention {

using namespace gpu;

constexpr int kTileWarps = 4, kTileThreads = kTileWarps * kWarp;
constexpr int kColumns = 64, kFragments = kColumns / 8;  // of a tile
// Sixteen bytes between rows let the lanes that load a matrix meet different banks.
template <typename T>
constexpr int kTileStride = kColumns + Line<T>::kElements;

// Rows that pass by at a time.
template <typename T>
constexpr int kPassing = sizeof(T) == sizeof(float) ? 32 : 64;
template <typename T>
constexpr int kPassingFragments = kPassing<T> / 8;

constexpr int64_t Chunks(int64_t count) { return (count + kColumns - 1) / kColumns; }

// Rows of an operand as one head of one example sees them.
template <typename T>
struct Source {
  const T* from = nullptr;  // its first row; null: it is absent
  int rows = 0, width = 0;
  int64_t step = 0;                // elements between rows
  const int32_t* index = nullptr;  // which row stands in the place of each; null: itself

  __device__ int TileCount() const { return from == nullptr ? 0 : static_cast<int>(Chunks(width)); }
};

// Begins to copy 64 columns of kRows rows to a tile, zeros where there are none. By all threads of
// the block. Rows that do not begin at multiples of 16 bytes are copied at once.
template <int kRows, typename T>
__device__ __forceinline__ void CopyTile(const Source<T>& source, int first, int column, T* tile) {
  constexpr int kElements = Line<T>::kElements, kLines = kColumns / kElements;
  const int line = ThreadIndex() % kLines * kElements, left = source.width - column - line;
  for (int own = ThreadIndex() / kLines; own < kRows; own += kTileThreads / kLines) {
    const bool there = first + own < source.rows && left > 0;
    int64_t row = there ? first + own : 0;
    if (there && source.index != nullptr) row = source.index[row];
    const T* from = source.from + (there ? row * source.step + column + line : 0);
    T* to = tile + own * kTileStride<T> + line;
    if (source.width % kElements == 0) {
      CopyAsync(to, from, there);
    } else {
#pragma unroll 1  // rare; copies of it would only take time to compile
      for (int e = 0; e < kElements; ++e) to[e] = there && e < left ? from[e] : FromFloat<T>(0.0f);
    }
  }
}

// The same of all columns, tile after tile. Returns where the next would lie.
template <int kRows, typename T>
__device__ __forceinline__ T* CopyTiles(const Source<T>& source, int first, T* to) {
  for (int tile = 0; tile < source.TileCount(); ++tile) {
    CopyTile<kRows>(source, first, tile * kColumns, to);
    to += kRows * kTileStride<T>;
  }
  return to;
}

// Of the rows of a block's own tile, 16 kM for each warp.
template <int kM, typename T>
__device__ __forceinline__ T* WarpRows(T* tile) {
  return tile + WarpIndex() * 16 * kM * kTileStride<T>;
}

// sums[m][n] += own rows from 16 m on times passing rows from 8 n on, over a tile's columns.
template <int kM, int kN>
__device__ __forceinline__ void AddScores(const BFloat16* own, const BFloat16* passing,
                                          Fragment (&sums)[kM][kN]) {
  constexpr int kStride = kTileStride<BFloat16>;
#pragma unroll
  for (int k = 0; k < kColumns; k += 16) {
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

// Adds up sixteen columns apart from the rest, so that large scores keep their last bits.
template <int kM, int kN>
__device__ __forceinline__ void AddScores(const float* own, const float* passing,
                                          Fragment (&sums)[kM][kN]) {
  constexpr int kStride = kTileStride<float>, kApart = 16;
#pragma unroll 1
  for (int first = 0; first < kColumns; first += kApart) {
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

// sums[m][c] += weights of the warp's own rows times columns 8 c and on of the passing rows.
template <int kM, int kN>
__device__ __forceinline__ void AddMixed(const Fragment (&weights)[kM][kN], const BFloat16* passing,
                                         Fragment (&sums)[kM][kFragments]) {
  constexpr int kStride = kTileStride<BFloat16>;
#pragma unroll
  for (int k = 0; k < kN; k += 2) {
    FragmentA rows[kM];
#pragma unroll
    for (int m = 0; m < kM; ++m) rows[m] = RowsOf(weights[m][k], weights[m][k + 1]);
#pragma unroll
    for (int c = 0; c < kFragments; c += 2) {
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

// The weights of a row lie with the four lanes that share it, which ask each other for them.
template <int kM, int kN>
__device__ __forceinline__ void AddMixed(const Fragment (&weights)[kM][kN], const float* passing,
                                         Fragment (&sums)[kM][kFragments]) {
#pragma unroll
  for (int n = 0; n < kN; ++n) {
    // A turn has enough to do; copies of it would only fill the instruction cache.
#pragma unroll 1
    for (int lane = 0; lane < 4; ++lane) {
#pragma unroll
      for (int odd = 0; odd < 2; ++odd) {
        const float* columns = passing + (8 * n + 2 * lane + odd) * kTileStride<float>;
#pragma unroll
        for (int m = 0; m < kM; ++m) {
          const int from = LaneIndex() / 4 * 4 + lane;
          const float row[] = {ShuffleFrom(weights[m][n].sum[odd], from),
                               ShuffleFrom(weights[m][n].sum[odd + 2], from)};
#pragma unroll
          for (int c = 0; c < kFragments; ++c) {
#pragma unroll
            for (int i = 0; i < 4; ++i) {
              sums[m][c].sum[i] += row[i / 2] * columns[8 * c + FragmentColumn(i)];
            }
          }
        }
      }
    }
  }
}

// Sums of 16 rows on their way to rows of 16-byte lines, for each warp.
constexpr int kSumsStride = kColumns + 8;
struct RowsOfSums {
  alignas(16) float of_warp[kTileWarps][16 * kSumsStride];
};

// Calls store(row, column, values) for eight columns at a time of 16 rows of sums.
template <int kN, typename Store>
__device__ __forceinline__ void StoreRowsOfSums(RowsOfSums& staged, const Fragment (&sums)[kN],
                                                const Store& store) {
  constexpr int kRowsAtOnce = kWarp / kN;
  float* own = staged.of_warp[WarpIndex()];
  SyncWarp();  // the last sums are no longer needed
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
    store(row, column, LoadEight(own + row * kSumsStride + column, kEight));
  }
}

// Rows of a result as one head of one example has them.
template <typename T>
struct Target {
  T* to;  // its first row
  int rows, width;
  int64_t step;  // elements between rows
  bool accumulate;
};

// Stores the sums of the warp's own rows, from `row` on, and 64 columns.
template <int kN, typename T>
__device__ __forceinline__ void StoreTile(RowsOfSums& staged, const Fragment (&sums)[kN],
                                          const Target<T>& target, int row, int column) {
  StoreRowsOfSums(staged, sums, [&](int own, int piece, const Eight& values) {
    const int left = target.width - column - piece;
    if (row + own >= target.rows || left <= 0) return;
    StoreResult(values, target.to + (row + own) * target.step + column + piece,
                left < kEight ? left : kEight, target.accumulate);
  });
}

// Uses tiles that pass by, two stages of memory taking turns where there is room for them. By all
// threads of the block, which may not use the stages' memory any more. `steps`:
//   bool Begin(stage)  finds the next tiles and begins the thread's copies; false: there are no
//   more void Prepare()     what is to be done with the tiles found last, but without their memory
//   void Use(stage)    the rest
// Afterwards all copies of the block have arrived and the stages are free.
template <typename Steps>
__device__ __forceinline__ void PassStages(int stages, Steps& steps) {
  bool more = steps.Begin(0);
  CommitCopies();
  for (int step = 0; more; ++step) {
    steps.Prepare();
    WaitForCopies<0>();
    // Everybody's copies are there, and nobody uses the stage before any more.
    SyncThreads();
    if (stages == 2) {
      more = steps.Begin((step + 1) % 2);
      CommitCopies();
    }
    steps.Use(stages == 2 ? step % 2 : 0);  // once, for it is long
    if (stages == 1) {
      SyncThreads();
      more = steps.Begin(0);
      CommitCopies();
    }
  }
  WaitForCopies<0>();
  SyncThreads();
}

}  // namespace syntra::attention
