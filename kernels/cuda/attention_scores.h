// SPDX-License-Identifier: Apache-2.0
// Tiles of scores in the registers of a warp: which tiles are needed, the terms that are not
// products, and masks. Rows of a tile are the block's own rows, which are queries or, with kOfKeys,
// keys. Columns are the passing rows of the other side.
#pragma once

#include "kernels/cuda/attention_terms.h"
#include "kernels/workspace.h"

namespace syntra::attention {

// Exponential(s, OffsetOf(r)) = exp(s - r). In bf16 it is a power of two whose exponent takes one
// multiply-add. In f32 that would lose the last bits of large scores.
constexpr float kLog2E = 1.44269504f;
template <typename T>
__device__ __forceinline__ float OffsetOf(float reference) {
  return sizeof(T) == sizeof(float) ? reference : reference * kLog2E;
}
template <typename T>
__device__ __forceinline__ float Exponential(float score, float offset) {
  if constexpr (sizeof(T) == sizeof(float)) {
    return expf(score - offset);
  } else {
    return Exp2(fmaf(score, kLog2E, -offset));
  }
}

// The operands of one side of the scores, queries or keys: those whose products are summed to the
// scores (`dot` and `dense`), and `value`, whose products are the gradients of the probabilities.
template <typename T>
struct Side {
  Source<T> dot, dense, value;

  __device__ int Features() const { return dot.TileCount() + dense.TileCount(); }
  __device__ int TileCount() const { return Features() + value.TileCount(); }

  template <int kRows>
  __device__ __forceinline__ void Copy(int first, T* to) const {
    to = CopyTiles<kRows>(dot, first, to);
    to = CopyTiles<kRows>(dense, first, to);
    CopyTiles<kRows>(value, first, to);
  }
};

// The rows of example b and head h of an activation [B, rows, heads * width].
template <typename T>
__device__ Source<T> RowsAt(const Terms<T>& terms, const T* from, int64_t rows, int64_t width,
                            int64_t b, int64_t h) {
  if (from == nullptr) return {};
  return {from + (b * rows * terms.heads + h) * width, static_cast<int>(rows),
          static_cast<int>(width), terms.heads * width};
}

template <typename T>
__device__ Target<T> TargetAt(const Terms<T>& terms, T* to, int64_t rows, int64_t width, int64_t b,
                              int64_t h, bool accumulate) {
  return {to + (b * rows * terms.heads + h) * width, static_cast<int>(rows),
          static_cast<int>(width), terms.heads * width, accumulate};
}

// The queries, u and, in the backward pass, dy.
template <typename T>
__device__ Side<T> Queries(const Terms<T>& terms, const T* dy, int64_t b, int64_t h) {
  return {RowsAt(terms, terms.query, terms.queries, terms.head_size, b, h),
          RowsAt(terms, terms.u, terms.queries, terms.features, b, h),
          RowsAt(terms, dy, terms.queries, terms.head_size, b, h)};
}

// The keys, their columns of the table of positions, and the values.
template <typename T>
__device__ Side<T> Keys(const Terms<T>& terms, int64_t b, int64_t h) {
  Source<T> dense;
  if (terms.u != nullptr) {
    const int64_t head = terms.positions_per_head ? h : 0;
    dense = {terms.position_rows + head * terms.position_extent * terms.position_width,
             static_cast<int>(terms.keys), static_cast<int>(terms.position_width),
             terms.position_width,
             terms.key_positions == nullptr ? nullptr : terms.key_positions + b * terms.keys};
  }
  return {RowsAt(terms, terms.key, terms.keys, terms.head_size, b, h), dense,
          RowsAt(terms, terms.value, terms.keys, terms.head_size, b, h)};
}

__device__ inline SegmentRange RangeOf(const SegmentRange* ranges, int64_t b, int64_t rows,
                                       int first, int count) {
  ranges += b * Chunks(rows);
  SegmentRange range = ranges[first / kColumns];
  for (int chunk = first / kColumns + 1; chunk * kColumns < first + count && chunk < Chunks(rows);
       ++chunk) {
    const SegmentRange next = ranges[chunk];
    range.lowest = next.lowest < range.lowest ? next.lowest : range.lowest;
    range.highest = next.highest > range.highest ? next.highest : range.highest;
    range.any_zero = range.any_zero || next.any_zero;
  }
  return range;
}

// What the mask allows of a tile of scores, known without a look at its rows.
struct Allowance {
  bool any;  // false: no element is allowed
  bool all;  // true: all elements exist and are allowed
};

// The same by key blocks alone.
template <typename T>
__device__ Allowance AllowanceOfBlocks(const Terms<T>& terms, int64_t h, int64_t first_query,
                                       int64_t last_query, int64_t first_key, int64_t last_key) {
  last_query = last_query < terms.queries ? last_query : terms.queries - 1;
  last_key = last_key < terms.keys ? last_key : terms.keys - 1;
  Allowance result{false, true};
  for (int64_t q = first_query / terms.block; q <= last_query / terms.block; ++q) {
    for (int64_t k = first_key / terms.block; k <= last_key / terms.block; ++k) {
      const bool read = terms.ReadsBlock(h, q, k);
      result = {result.any || read, result.all && read};
    }
  }
  return result;
}

template <typename T>
__device__ Allowance AllowanceOf(const Terms<T>& terms, int64_t b, int64_t h, int first_query,
                                 int query_count, int first_key, int key_count) {
  const int64_t last_query = first_query + query_count - 1, last_key = first_key + key_count - 1;
  const Pattern::Extent extent =
      terms.pattern.Of(first_query + terms.Start(), query_count, first_key, key_count);
  Allowance result{extent.some, extent.all && last_query < terms.queries && last_key < terms.keys};
  if (terms.prefix_ends != nullptr) {
    const SegmentRange ends =
        RangeOf(terms.prefix_ranges, b, terms.queries, first_query, query_count);
    result.any = result.any || first_key < ends.highest;
    result.all = result.all || (!ends.any_zero && last_key < ends.lowest &&
                                last_query < terms.queries && last_key < terms.keys);
  }
  if (terms.key_blocks != nullptr && result.any) {
    const Allowance read =
        AllowanceOfBlocks(terms, h, first_query, last_query, first_key, last_key);
    result = {read.any, result.all && read.all};
  }
  if (terms.query_segments != nullptr && result.any) {
    const SegmentRange of_queries =
        RangeOf(terms.query_ranges, b, terms.queries, first_query, query_count);
    const SegmentRange of_keys = RangeOf(terms.key_ranges, b, terms.keys, first_key, key_count);
    result.any = of_queries.lowest <= of_keys.highest && of_keys.lowest <= of_queries.highest;
    result.all =
        result.all && of_queries.Same() && of_keys.Same() && of_queries.lowest == of_keys.lowest;
  }
  return result;
}

// The place of a tile of scores: its first own row and its first passing row.
struct Place {
  int own = 0, passing = 0;
  bool all = false;  // whether all elements exist and are allowed
};

// Moves `place` to the next passing tile that may have allowed elements. Returns false if there is
// none. At first place.passing must be minus one tile.
template <bool kOfKeys, typename T>
__device__ bool FindNext(const Terms<T>& terms, int64_t b, int64_t h, int own_rows, Place& place) {
  const int64_t end = kOfKeys ? terms.queries : terms.keys;
  for (place.passing += kPassing<T>; place.passing < end; place.passing += kPassing<T>) {
    const Allowance allowance =
        kOfKeys ? AllowanceOf(terms, b, h, place.passing, kPassing<T>, place.own, own_rows)
                : AllowanceOf(terms, b, h, place.own, own_rows, place.passing, kPassing<T>);
    place.all = allowance.all;
    if (allowance.any) return true;
  }
  return false;
}

// The row and column numbers of a warp's tile. Beyond the end they repeat the last one.
template <bool kOfKeys, int kM, int kN>
struct TileRows {
  int row[kM][2], column[kN][2];

  template <typename T>
  __device__ TileRows(const Terms<T>& terms, const Place& place) {
    const auto last = static_cast<int>((kOfKeys ? terms.keys : terms.queries) - 1);
    const auto last_column = static_cast<int>((kOfKeys ? terms.queries : terms.keys) - 1);
#pragma unroll
    for (int m = 0; m < kM; ++m) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int at = place.own + (WarpIndex() * kM + m) * 16 + FragmentRow(2 * half);
        row[m][half] = at < last ? at : last;
      }
    }
#pragma unroll
    for (int n = 0; n < kN; ++n) {
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        const int at = place.passing + 8 * n + FragmentColumn(e);
        column[n][e] = at < last_column ? at : last_column;
      }
    }
  }
};

// Calls body(score, i, j) for each score with its query and key. Beyond the end they repeat the
// last one.
template <bool kOfKeys, int kM, int kN, typename T, typename Body>
__device__ __forceinline__ void ForScores(const Terms<T>& terms, const Place& place,
                                          Fragment (&scores)[kM][kN], const Body& body) {
  const TileRows<kOfKeys, kM, kN> rows(terms, place);
#pragma unroll
  for (int m = 0; m < kM; ++m) {
#pragma unroll
    for (int n = 0; n < kN; ++n) {
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        const int own = rows.row[m][k / 2], passing = rows.column[n][k % 2];
        body(scores[m][n].sum[k], kOfKeys ? passing : own, kOfKeys ? own : passing);
      }
    }
  }
}

// Sets a warp's scores to the terms that are not products of features.
template <bool kOfKeys, int kM, int kN, typename T>
__device__ __forceinline__ void StartScores(const Terms<T>& terms, int64_t b, int64_t h,
                                            const Place& place, Fragment (&scores)[kM][kN]) {
  if (terms.a != nullptr || (terms.table != nullptr && !terms.ByRow())) {
    ForScores<kOfKeys>(terms, place, scores,
                       [&](float& score, int i, int j) { score = terms.Others(b, h, i, j); });
    return;
  }
#pragma unroll
  for (int m = 0; m < kM; ++m) {
#pragma unroll
    for (int n = 0; n < kN; ++n) scores[m][n] = {};
  }
  if (terms.bias != nullptr) {
    const float* bias = terms.bias + h * (terms.queries + terms.keys - 1) + terms.queries - 1;
    if (place.all) {
      // Counts from the lane's first query and key, so that equal differences share one load.
      const int own = place.own + WarpIndex() * kM * 16 + FragmentRow(0);
      const int passing = place.passing + FragmentColumn(0);
      bias += kOfKeys ? own - passing : passing - own;
#pragma unroll
      for (int m = 0; m < kM; ++m) {
#pragma unroll
        for (int n = 0; n < kN; ++n) {
#pragma unroll
          for (int k = 0; k < 4; ++k) {
            const int difference = 8 * n + k % 2 - 16 * m - k / 2 * 8;
            scores[m][n].sum[k] = bias[kOfKeys ? -difference : difference];
          }
        }
      }
    } else {
      ForScores<kOfKeys>(terms, place, scores,
                         [&](float& score, int i, int j) { score = bias[j - i]; });
    }
  }
  if (terms.table != nullptr) {
    const int64_t head = terms.table_heads == 1 ? 0 : h;
    const int64_t row_stride = terms.table_queries == 1 ? 0 : terms.table_keys;
    const float* table =
        terms.table + head * terms.table_queries * terms.table_keys + terms.Start() * row_stride;
    ForScores<kOfKeys>(terms, place, scores,
                       [&](float& score, int i, int j) { score += table[i * row_stride + j]; });
  }
}

// Scores that are not allowed become -inf.
template <bool kOfKeys, int kM, int kN, typename T>
__device__ __forceinline__ void MaskScores(const Terms<T>& terms, int64_t b, int64_t h,
                                           const Place& place, Fragment (&scores)[kM][kN]) {
  const auto queries = static_cast<int>(terms.queries), keys = static_cast<int>(terms.keys);
  const int64_t start = terms.Start();
  const int first_own = place.own + WarpIndex() * kM * 16;
#pragma unroll
  for (int m = 0; m < kM; ++m) {
#pragma unroll
    for (int n = 0; n < kN; ++n) {
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        const int own = first_own + 16 * m + FragmentRow(k);
        const int passing = place.passing + 8 * n + FragmentColumn(k);
        const int i = kOfKeys ? passing : own, j = kOfKeys ? own : passing;
        if (i >= queries || j >= keys ||
            (terms.pattern.causal && j > i + start && !terms.InPrefix(b, i, j))) {
          scores[m][n].sum[k] = -INFINITY;
        }
      }
    }
  }
  if (terms.IsSparse()) {
    ForScores<kOfKeys>(terms, place, scores, [&](float& score, int i, int j) {
      if (!terms.Reads(h, i, j)) score = -INFINITY;
    });
  }
  if (terms.query_segments == nullptr) return;
  const int32_t* of_queries = terms.query_segments + b * terms.queries;
  const int32_t* of_keys = terms.key_segments + b * terms.keys;
  ForScores<kOfKeys>(terms, place, scores, [&](float& score, int i, int j) {
    if (of_queries[i] == 0 || of_queries[i] != of_keys[j]) score = -INFINITY;
  });
}

// Arrays that the tile kernels need, computed from the operands into the call's workspace.
class PreparedTerms {
 public:
  PreparedTerms(const Dimensions& z, std::span<const TensorType> inputs, WorkspaceLayout& layout);

  // Computes them and sets their addresses in `terms`.
  template <typename T>
  void Run(const KernelArguments& arguments, Terms<T>& terms) const;

 private:
  size_t query_ranges_ = 0, key_ranges_ = 0, prefix_ranges_ = 0, position_rows_ = 0;
};

// The shared memory of a block: its own tiles, and one or two stages of passing tiles.
struct TileMemory {
  int stages;
  size_t bytes;

  // Two stages, or one if two do not fit or would leave no room for the L1 cache. nullopt if not
  // even one fits into this thread's GPU.
  static std::optional<TileMemory> For(size_t own, size_t stage) {
    constexpr size_t kMostOfTwo = 163 << 10;
    const size_t most = MostSharedBytes();
    const auto bytes = [&](int stages) {
      return own + std::max(stages * stage, sizeof(RowsOfSums));
    };
    if (bytes(2) <= std::min(most, kMostOfTwo)) return TileMemory{2, bytes(2)};
    if (bytes(1) <= most) return TileMemory{1, bytes(1)};
    return std::nullopt;
  }
};

}  // namespace syntra::attention
