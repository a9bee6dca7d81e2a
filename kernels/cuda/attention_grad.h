// SPDX-License-Identifier: Apache-2.0
// attention_grad on the GPU. Tiles of probabilities P are recomputed from log_sum_exp; with dP = dY
// V^T and D_i = dy_i . y_i the gradient of the scores is dS = P (dP - D) (Dao et al. 2022,
// FlashAttention, appendix B.4). Every gradient is a sum in a fixed order, so each side of the
// scores has a pass of its own that recomputes them: products of P and dS with what passes by need
// no transposes, because a pass forms them with its own rows as rows.
//
//   queries  dQ = dS K, dU = dS p^T
//   keys     dV = P^T dY, dK = dS^T Q, and sums over the batch: dp^T = dS^T U, dbias
//   scores   dtable: a block takes a tile of scores, examples pass by
//   outer    da, db
//
// With the products of a forward pass as 2, queries take 3 and keys 4. One pass in place of both
// would take 5, but 8 bytes of dQ's parts for each element and 64 keys: more time than 2 products.
#pragma once

#include "kernels/cuda/attention_scores.h"

namespace syntra::attention {

// Of a query.
struct alignas(8) RowStatistics {
  float offset;  // OffsetOf(log_sum_exp), 0 where nothing is allowed
  float mean;    // D
};

// Rows of a block's own tile, 16 for each warp.
constexpr int kOwnRows = kTileWarps * 16;

// Side by side in the call's workspace.
template <typename T>
struct Recomputation {
  Backward<T> call;
  RowStatistics* statistics;  // [B, H, T up to a multiple of 64]
  // The pass of the keys takes the batch in parts, whose sums are of
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

  // A warp's 16 keys and all queries make entry i - j + 15 of key j of the 16 and query i; those of
  // a lane are 32 apart.
  static constexpr int64_t LineLength(int64_t queries) {
    return Chunks(queries) * kColumns + kWarp;
  }
};

// Of P and dS in registers: sums of a warp's 16 own rows.
template <typename T>
using RowScores = Fragment[1][kPassingFragments<T>];

// Makes P and dS of the terms that the scores begin with. `own`, `passing`: the tiles of both sides
// in the order in which Side copies them. statistics(n, k) are those of the query of sum k of
// fragment n.
template <bool kOfKeys, typename T, typename Statistics>
__device__ __forceinline__ void FinishScores(const Terms<T>& terms, int64_t b, const Place& place,
                                             const Side<T>& side, const T* own, const T* passing,
                                             const Statistics& statistics, RowScores<T>& scores,
                                             RowScores<T>& d_scores) {
  constexpr int kOwnTile = kOwnRows * kTileStride<T>, kPassingTile = kPassing<T> * kTileStride<T>;
  const int features = side.Features(), tiles = side.TileCount();
  for (int c = 0; c < features; ++c) {
    AddScores(WarpRows<1>(own + c * kOwnTile), passing + c * kPassingTile, scores);
  }
  if (!place.all) MaskScores<kOfKeys>(terms, b, place, scores);
#pragma unroll
  for (Fragment& fragment : d_scores[0]) fragment = {};
  for (int c = features; c < tiles; ++c) {
    AddScores(WarpRows<1>(own + c * kOwnTile), passing + c * kPassingTile, d_scores);
  }
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

// Sizes of a call's tiles.
template <typename T>
struct GradientSizes {
  int64_t heads_columns, features, tiles;  // chunks of 64 columns: of a head, of u, of a side

  GradientSizes(int64_t head_size, int64_t feature_count, bool dot)
      : heads_columns(Chunks(head_size)),
        features(Chunks(feature_count)),
        tiles((dot ? 2 : 1) * heads_columns + features) {}

  size_t own_bytes() const { return tiles * kOwnRows * kTileStride<T> * sizeof(T); }
  size_t passing_bytes() const { return tiles * kPassing<T> * kTileStride<T> * sizeof(T); }
};

// dQ, dU, dV, dK; parts of dp and dbias, which FinishParts adds up.
template <typename T>
void RunSides(const KernelArguments& arguments, const Recomputation<T>& work);
template <typename T>
std::optional<TileMemory> SideMemory(const GradientSizes<T>& sizes, bool bias);

// dtable, da, db, and the sums of parts.
template <typename T>
void RunScores(const KernelArguments& arguments, const Recomputation<T>& work);
template <typename T>
std::optional<TileMemory> ScoreMemory(const GradientSizes<T>& sizes);

}  // namespace syntra::attention
