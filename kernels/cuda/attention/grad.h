// SPDX-License-Identifier: Apache-2.0
// attention_grad on the GPU: what the passes of its kernels share. For a head of an example with T
// queries and S keys:
//
//   P   [T, S]  probabilities, recomputed from the scores and log_sum_exp
//   dP  [T, S]  dY V^T
//   D   [T]     dy_i . y_i
//   dS  [T, S]  the gradient of the scores, P_ij (dP_ij - D_i)
//               (Dao et al. 2022, FlashAttention, appendix B.4)
//
// Every gradient is a sum in a fixed order, so queries and keys have a pass each. Both recompute
// tiles of P and dS. A block keeps a tile of rows of one side (its own rows), and tiles of the
// other side pass by:
//
//   pass     own rows          passing rows  results
//   queries  queries           keys          dQ = dS K, dU = dS p^T
//   factors  queries           keys          da, db: the unit vectors of the keys, summed with
//                                            weights dS times the other factor
//   keys     keys              queries       dV = P^T dY, dK = dS^T Q, and sums over the batch:
//                                            dp^T = dS^T U, dbias
//   scores   a tile of scores  examples      dtable
//
// The own rows are the rows of a block's tiles of P and dS; in the pass over keys these are tiles
// of P^T and dS^T. So a product with the passing rows needs no transpose.
//
// Products for a tile: 2 in the forward pass, 3 in the pass over queries (scores, dP, dQ), 4 in the
// pass over keys (scores, dP, dV, dK). One pass for both would take 5 instead of 7, but it would
// read and write the sums of dQ for each 64 keys, which takes longer than 2 products. Hopper GPUs
// have enough shared memory to keep dQ there, so they have such a kernel (one_pass_grad_hopper.cu).
// BackwardKernels lists all kernels.
#pragma once

#include "base/divide.h"
#include "kernels/cuda/attention/batch_parts.h"
#include "kernels/cuda/attention/bias_grad.h"
#include "kernels/cuda/attention/scores.h"

namespace syntra::attention {

// What the backward pass needs to know of a query i besides its rows.
struct alignas(8) RowStatistics {
  // OffsetOf(log_sum_exp). It is infinite if the query may read no key or does not exist: its row
  // of P is then zero.
  float offset;
  float mean;  // D_i, the mean of row i of dP with the weights P
};

// In the pass over keys: the statistics of the queries that are a lane's columns of a tile. They
// are loaded before the products, so that they have arrived when the products are complete.
class ColumnStatistics {
 public:
  // `first`: the statistics of the tile's first query, whose number is a multiple of 64.
  __device__ __forceinline__ explicit ColumnStatistics(const RowStatistics* first) {
#pragma unroll
    for (int n = 0; n < kFragments; ++n) {
      columns_[n] = *reinterpret_cast<const Pair*>(first + 8 * n + FragmentColumn(0));
    }
  }
  // The statistics of the query of element k of fragment n.
  __device__ __forceinline__ const RowStatistics& operator()(int n, int k) const {
    return columns_[n].of[k % 2];
  }

 private:
  struct alignas(16) Pair {  // neighbours, which one access loads
    RowStatistics of[2];
  };
  Pair columns_[kFragments];
};

// The number of rows of a block's own tile: 16 for each warp.
constexpr int kOwnRows = kTileWarps * 16;

// The kernels that compute a call's gradients of queries and keys.
enum class BackwardKernels {
  kAnyGpu,             // two_pass_grad.cu
  kOnePassOnHopper,    // one_pass_grad_hopper.cu
  kTwoPassesOnHopper,  // two_pass_grad_hopper.cu
  kFactorsOnHopper,    // factors_grad_hopper.cu
};

// A call of attention_grad and its arrays in the workspace.
template <typename T>
struct Recomputation {
  Backward<T> call;
  BackwardKernels kernels;
  RowStatistics* statistics;  // [B, H, T up to a multiple of 64]
  // The number of parts into which the pass over keys divides the batch. A block sums over the
  // examples of a part; later the sums of the parts are added up.
  int64_t parts;
  float* dense_parts;    // dp^T, [parts, H, S and F up to multiples of 64]
  float* bias_lines;     // parts of dbias, [parts, H, LineTiles(), LineWarps(), LineLength()]
  float* bias_sums;      // their sums, [H, T + S - 1], if there is a bias_reach (bias_grad.h)
  T* starts;             // tiles that one_pass_grad_hopper.cu loads (score_starts.h)
  bool table_on_hopper;  // table_grad_hopper.cu computes the sums of dS
  int64_t table_parts;
  float* table_sums;  // dS, [table_parts, H, T, S up to a multiple of 64]

  __device__ const RowStatistics* StatisticsOf(int64_t b, int64_t h) const {
    return statistics + (b * call.terms.heads + h) * Chunks(call.terms.queries) * kColumns;
  }
  // The statistics of query i. If it does not exist, its probabilities are zero.
  __device__ __forceinline__ RowStatistics StatisticsOf(int64_t b, int64_t h, int i) const {
    return i < call.terms.queries ? StatisticsOf(b, h)[i] : RowStatistics{INFINITY, 0.0f};
  }
  __device__ float* DenseParts(int64_t part, int64_t h) const {
    const Terms<T>& terms = call.terms;
    return dense_parts + (part * terms.heads + h) * Chunks(terms.keys) * kColumns *
                             Chunks(terms.features) * kColumns;
  }
  __device__ float* BiasLine(int64_t part, int64_t h, int64_t tile, int64_t warp) const {
    const int64_t block = (part * call.terms.heads + h) * LineTiles() + tile;
    return bias_lines + (block * LineWarps() + warp) * LineLength();
  }
  __device__ float* TableSums(int64_t part, int64_t h, int64_t i) const {
    return table_sums + ((part * call.terms.heads + h) * call.terms.queries + i) *
                            Chunks(call.terms.keys) * kColumns;
  }

  // Bias lines. An entry of dbias is the sum of dS over the pairs of a query i and a key j with one
  // difference i - j, a diagonal of dS. Each warp adds the diagonals of its tiles to a line of its
  // own, so that no two warps add to the same memory; later the lines are added up.
  //
  //   a line of       begins with             query i and key j add to entry
  //   a warp's keys   key 15 of its 16 keys   i - j + 15, where j counts from the warp's first key
  //   all keys        the last padded key     i - j + PaddedKeys() - 1
  //
  // Lines are of all keys where one block computes all keys of a head. Their lengths are multiples
  // of 32.
  __host__ __device__ bool LinesOfAllKeys() const {
    return kernels == BackwardKernels::kOnePassOnHopper ||
           kernels == BackwardKernels::kFactorsOnHopper;
  }
  __host__ __device__ int64_t LineTiles() const {
    return LinesOfAllKeys() ? 1 : Chunks(call.terms.keys);
  }
  __host__ __device__ int64_t LineWarps() const {
    return LinesOfAllKeys() ? 2 * kTileWarps : kTileWarps;
  }
  __host__ __device__ int64_t LineLength() const {
    return (LinesOfAllKeys() ? PaddedKeys() : 0) + Chunks(call.terms.queries) * kColumns + kWarp;
  }
  __host__ __device__ int64_t PaddedKeys() const {
    return DivideUp(call.terms.keys, 2 * kColumns) * (2 * kColumns);
  }
  // The entry of difference 0, in the line of the 16 keys from `first_key` on or in one of all
  // keys. In a line of 16 keys it may lie beyond the ends.
  __device__ int64_t MainDiagonal(int64_t first_key) const {
    return LinesOfAllKeys() ? PaddedKeys() - 1 : first_key + 15;
  }
  // The entry to which tiles that are far on a side add (FarSide: all their pairs have one bias).
  // `first_key` is 0 if lines are of all keys. If the line has no such tiles, it is any entry.
  __device__ int64_t FarEntry(int side, int64_t first_key) const {
    const int64_t diagonal = MainDiagonal(first_key);
    const int64_t last = diagonal - first_key + call.terms.queries - 1;
    const int64_t entry = diagonal - call.terms.FarDifference(side);
    return entry < 0 ? 0 : entry < last ? entry : last;
  }
  // The floats of all lines of a part.
  int64_t LineFloats() const { return call.terms.heads * LineTiles() * LineWarps() * LineLength(); }
};

// Sets a warp's bias line to zero and returns it, or null if the call needs no dbias.
template <typename T>
__device__ __forceinline__ float* StartLine(const Recomputation<T>& work, int64_t part, int64_t h,
                                            int64_t tile, int64_t warp) {
  if (work.bias_lines == nullptr) return nullptr;
  float* line = work.BiasLine(part, h, tile, warp);
  for (int64_t x = LaneIndex(); x < work.LineLength(); x += kWarp) line[x] = 0;
  SyncWarp();
  return line;
}

// The work of a block of a grid with one block for each head and part: its head, and the examples
// first..end - 1.
struct Share {
  int h, part, first, end;

  template <typename T>
  __device__ explicit Share(const Recomputation<T>& work) {
    const auto parts = static_cast<int>(work.parts);
    const auto examples = static_cast<int>(work.call.terms.batch);
    h = static_cast<int>(BlockIndex()) / parts;
    part = static_cast<int>(BlockIndex()) % parts;
    first = FirstOfPart(examples, part, parts);
    end = FirstOfPart(examples, part + 1, parts);
  }
};

// A warp's tile of dS, [16, 8 kN], with its lower eight rows folded onto the upper ones, which are
// moved eight columns to the right:
//
//   row[r][c] = dS[r + 8][c] + dS[r][c - 8]        (0 beyond the tile's columns)
//
// Both terms lie on one diagonal, since their columns and rows differ by eight.
template <typename T>
struct SkewedRows {
  static constexpr int kWidth = 8 * (kPassingFragments<T> + 1);
  float row[8][kWidth];
};

// Adds the diagonals of a warp's tile of dS, whose rows are 16 keys, to its bias line: `line` is
// the entry of the first query and the last key. Entry x is the sum of row[r][x + r - 7] over the
// eight rows of SkewedRows. If the tile's rows are queries, kStep is -1 and `line` is the entry of
// the last query and the first key, from which entries go backwards.
template <typename T, int kStep = 1>
__device__ __forceinline__ void AddDiagonals(const Fragment (&d_scores)[kPassingFragments<T>],
                                             SkewedRows<T>& skewed, float* line) {
  constexpr int kN = kPassingFragments<T>;
  constexpr int kWidth = SkewedRows<T>::kWidth, kEntries = kWidth + 7;
  float entry[DivideUp(kEntries, kWarp)];
#pragma unroll
  for (int x = LaneIndex(), e = 0; e < std::ssize(entry); ++e, x += kWarp) {
    entry[e] = x < kEntries ? line[kStep * x] : 0.0f;
  }
#pragma unroll
  for (int n = 0; n <= kN; ++n) {
#pragma unroll
    for (int e = 0; e < 2; ++e) {
      skewed.row[FragmentRow(0)][8 * n + FragmentColumn(e)] =
          (n > 0 ? d_scores[n > 0 ? n - 1 : 0].sum[e] : 0.0f) +
          (n < kN ? d_scores[n < kN ? n : 0].sum[2 + e] : 0.0f);
    }
  }
  SyncWarp();
#pragma unroll
  for (int x = LaneIndex(), e = 0; e < std::ssize(entry); ++e, x += kWarp) {
#pragma unroll
    for (int r = 0; r < 8; ++r) {
      const int column = x + r - 7;
      if (column >= 0 && column < kWidth) entry[e] += skewed.row[r][column];
    }
    if (x < kEntries) line[kStep * x] = entry[e];
  }
  SyncWarp();
}

// A lane's sums of dS over tiles that are far (FarSide), before and after their queries. All
// entries of a side that are bias_reach or more away from difference 0 count as one (bias_grad.h),
// so it does not matter which of them gets the sum: AddTo adds it to one entry of the warp's line.
class FarSums {
 public:
  // Adds a tile that is far on a side.
  template <int kN>
  __device__ __forceinline__ void Add(int side, const Fragment (&d_scores)[kN]) {
    float sum = 0.0f;
#pragma unroll
    for (const Fragment& fragment : d_scores) {
      sum += (fragment.sum[0] + fragment.sum[1]) + (fragment.sum[2] + fragment.sum[3]);
    }
    before_ += side < 0 ? sum : 0.0f;
    after_ += side > 0 ? sum : 0.0f;
  }

  // Adds the sums of the warp's lanes to its line. `first_key`: as in FarEntry.
  template <typename T>
  __device__ __forceinline__ void AddTo(float* line, const Recomputation<T>& work,
                                        int64_t first_key) const {
    if (work.call.terms.bias_reach == 0) return;
    const float before = WarpSum(before_), after = WarpSum(after_);
    if (LaneIndex() != 0) return;
    line[work.FarEntry(-1, first_key)] += before;
    line[work.FarEntry(1, first_key)] += after;
  }

 private:
  float before_ = 0.0f, after_ = 0.0f;  // keys before and after their queries
};

// Adds a warp's tile of dS to its bias line: if the tile is far, to `far`, otherwise along its
// diagonals. `line`: as in AddDiagonals.
template <bool kOfKeys, typename T>
__device__ __forceinline__ void AddToLine(const Terms<T>& terms, const Place& place,
                                          const Fragment (&d_scores)[kPassingFragments<T>],
                                          SkewedRows<T>& skewed, float* line, FarSums& far) {
  const int side = FarSide<kOfKeys, 1, kPassingFragments<T>>(terms, place);
  if (side != 0) return far.Add(side, d_scores);
  AddDiagonals<T, kOfKeys ? 1 : -1>(d_scores, skewed, line);
}

// A lane's elements of P or dS in a warp's 16 own rows and all passing rows of a tile.
template <typename T>
using RowScores = Fragment[1][kPassingFragments<T>];

// Turns `scores` from masked scores into P, and `d_scores` from dP into dS. statistics(n, k)
// returns those of the query of element k of fragment n.
template <typename T, typename Statistics>
__device__ __forceinline__ void FinishScores(const Statistics& statistics, RowScores<T>& scores,
                                             RowScores<T>& d_scores) {
#pragma unroll
  for (int n = 0; n < kPassingFragments<T>; ++n) {
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      const RowStatistics row = statistics(n, k);
      float& p = scores[0][n].sum[k];
      p = Exponential<T>(p, row.offset);
      d_scores[0][n].sum[k] = p * (d_scores[0][n].sum[k] - row.mean);
    }
  }
}

// Computes P in `scores` and dS in `d_scores`. Before, `scores` must hold the terms that are not
// products (StartScores). `own` and `passing` are the tiles of both sides, in the order in which
// Side copies them.
template <bool kOfKeys, typename T, typename Statistics>
__device__ __forceinline__ void FinishScores(const Terms<T>& terms, int64_t b, int64_t h,
                                             const Place& place, const Side<T>& side, const T* own,
                                             const T* passing, const Statistics& statistics,
                                             RowScores<T>& scores, RowScores<T>& d_scores) {
  AddProducts(side, own, passing, scores);
  MaskScores<kOfKeys>(terms, b, h, place, scores);
#pragma unroll
  for (Fragment& fragment : d_scores[0]) fragment = {};
  const int first = side.Scores();
  AddScoresOfTiles(side.value.TileCount(), own + first * kOwnTile<T, 1>,
                   passing + first * kPassingTile<T>, d_scores);
  FinishScores<T>(statistics, scores, d_scores);
}

// How much shared memory the tiles of a call take in a pass.
template <typename T>
struct GradientTiles {
  int64_t tiles;  // of 64 columns, of all operands of a side

  // `sizes` are Dimensions or Terms.
  template <typename Sizes>
  GradientTiles(const Sizes& sizes, bool dot)
      : tiles((dot ? 2 : 1) * Chunks(sizes.head_size) + Chunks(sizes.features) +
              Chunks(sizes.a_size) + Chunks(sizes.b_size)) {}

  size_t own_bytes() const { return tiles * kOwnRows * kTileStride<T> * sizeof(T); }
  size_t passing_bytes() const { return tiles * kPassing<T> * kTileStride<T> * sizeof(T); }
};

// Computes dQ, dU, da, db, dV, dK, and parts of dp and dbias, which SumScoreGradients adds up.
template <typename T>
void RunTwoPasses(const KernelArguments& arguments, const Recomputation<T>& work);
template <typename T>
std::optional<TileMemory> TwoPassTileMemory(const GradientTiles<T>& tile_counts, bool bias);

// Computes dtable, and adds up the parts.
template <typename T>
void SumScoreGradients(const KernelArguments& arguments, const Recomputation<T>& work);
template <typename T>
std::optional<TileMemory> TableTileMemory(const GradientTiles<T>& tile_counts);

}  // namespace syntra::attention
