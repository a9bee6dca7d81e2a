// SPDX-License-Identifier: Apache-2.0
// attention_grad on the GPU. Tiles of probabilities P are recomputed from log_sum_exp. With dP = dY
// V^T and D_i = dy_i . y_i the gradient of the scores is dS = P (dP - D) (Dao et al. 2022,
// FlashAttention, appendix B.4). Every gradient is a sum in a fixed order, so queries and keys have
// a pass each, which recomputes P and dS. In a pass a block keeps a tile of one side (its own rows)
// and loops over tiles of the other side (the passing rows). Its own rows are the rows of P and dS,
// so the products with the passing rows need no transposes.
//
//   queries  dQ = dS K, dU = dS p^T
//   factors  another pass over queries: da and db, products of the keys' unit vectors with dS, each
//            element of it times that of the other factor
//   keys     dV = P^T dY, dK = dS^T Q, and sums over the batch: dp^T = dS^T U, dbias
//   scores   dtable: a block keeps a tile of scores and loops over the examples
//
// If a forward pass computes 2 products, the pass of the queries computes 3 and that of the keys 4.
// One pass for both would compute 5, but would move 8 bytes of partial sums for each element of dQ
// and 64 keys, which takes longer than 2 products.
#pragma once

#include "kernels/cuda/attention_scores.h"

namespace syntra::attention {

// Statistics of a query.
struct alignas(8) RowStatistics {
  // OffsetOf(log_sum_exp); infinite if no key is allowed or the query does not exist, so that its P
  // are zero.
  float offset;
  float mean;  // D
};

// The number of rows of a block's own tile: 16 for each warp.
constexpr int kOwnRows = kTileWarps * 16;

// A call of attention_grad and its arrays in the workspace.
template <typename T>
struct Recomputation {
  Backward<T> call;
  RowStatistics* statistics;  // [B, H, T up to a multiple of 64]
  // The pass of the keys splits the batch into parts. Sums over the batch are first computed for
  // each part.
  int64_t parts;
  float* dense_parts;  // dp^T, [parts, H, S and F up to multiples of 64]
  float* bias_lines;   // diagonals, [parts, H, chunks of 64 keys, warps, LineLength()]
  int64_t table_parts;
  float* table_sums;  // dS, [table_parts, H, T, S up to a multiple of 64]

  __device__ const RowStatistics* StatisticsOf(int64_t b, int64_t h) const {
    return statistics + (b * call.terms.heads + h) * Chunks(call.terms.queries) * kColumns;
  }
  __device__ float* DenseParts(int64_t part, int64_t h) const {
    const Terms<T>& terms = call.terms;
    return dense_parts + (part * terms.heads + h) * Chunks(terms.keys) * kColumns *
                             Chunks(terms.features) * kColumns;
  }
  __device__ float* BiasLine(int64_t part, int64_t h, int64_t tile, int64_t warp) const {
    const int64_t block = (part * call.terms.heads + h) * Chunks(call.terms.keys) + tile;
    return bias_lines + (block * kTileWarps + warp) * LineLength(call.terms.queries);
  }
  __device__ float* TableSums(int64_t part, int64_t h, int64_t i) const {
    return table_sums + ((part * call.terms.heads + h) * call.terms.queries + i) *
                            Chunks(call.terms.keys) * kColumns;
  }

  // The length of the bias line of a warp's 16 keys and all queries. Key j of the 16 and query i
  // add to entry i - j + 15. The entries of a lane are 32 apart.
  static constexpr int64_t LineLength(int64_t queries) {
    return Chunks(queries) * kColumns + kWarp;
  }
};

// P or dS in registers: the elements of a warp's 16 own rows.
template <typename T>
using RowScores = Fragment[1][kPassingFragments<T>];

// Computes P and dS. `scores` must hold the terms that are not products. `own` and `passing` are
// the tiles of both sides in the order in which Side copies them. statistics(n, k) returns those of
// the query of element k of fragment n.
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

// The numbers of tiles of a call.
template <typename T>
struct GradientTiles {
  int64_t tiles;  // of a side

  // `sizes` are Dimensions or Terms.
  template <typename Sizes>
  GradientTiles(const Sizes& sizes, bool dot)
      : tiles((dot ? 2 : 1) * Chunks(sizes.head_size) + Chunks(sizes.features) +
              Chunks(sizes.a_size) + Chunks(sizes.b_size)) {}

  size_t own_bytes() const { return tiles * kOwnRows * kTileStride<T> * sizeof(T); }
  size_t passing_bytes() const { return tiles * kPassing<T> * kTileStride<T> * sizeof(T); }
};

// Computes dQ, dU, da, db, dV, dK, and parts of dp and dbias, which RunScores adds up.
template <typename T>
void RunSides(const KernelArguments& arguments, const Recomputation<T>& work);
template <typename T>
std::optional<TileMemory> SideMemory(const GradientTiles<T>& tile_counts, bool bias);

// Computes dtable, and adds up the parts.
template <typename T>
void RunScores(const KernelArguments& arguments, const Recomputation<T>& work);
template <typename T>
std::optional<TileMemory> ScoreMemory(const GradientTiles<T>& tile_counts);

}  // namespace syntra::attention
