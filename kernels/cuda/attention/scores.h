// SPDX-License-Identifier: Apache-2.0
// Tiles of scores in the registers of a warp: which tiles are needed, the terms that are not
// products, and masks. Rows of a tile are the block's own rows, which are queries or, with kOfKeys,
// keys. Columns are the passing rows of the other side.
#pragma once

#include "base/divide.h"
#include "kernels/cuda/attention/terms.h"
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

// The operands of one side of the scores, which is queries or keys. The products of `dot` and of
// `dense` are added to the scores, those of `a` and `b` are first multiplied with each other, and
// those of `value` are the gradients of the probabilities.
template <typename T>
struct Side {
  Source<T> dot, dense, a, b, value;

  // The number of tiles of `dot` and `dense`, of all before `value`, and of all.
  __device__ int Features() const { return dot.TileCount() + dense.TileCount(); }
  __device__ int Scores() const { return Features() + a.TileCount() + b.TileCount(); }
  __device__ int TileCount() const { return Scores() + value.TileCount(); }

  template <int kRows>
  __device__ __forceinline__ void Copy(int first, T* to) const {
    to = CopyTiles<kRows>(dot, first, to);
    to = CopyTiles<kRows>(dense, first, to);
    to = CopyTiles<kRows>(a, first, to);
    to = CopyTiles<kRows>(b, first, to);
    CopyTiles<kRows>(value, first, to);
  }
};

// The rows of an activation [B, rows, heads * width].
struct PitchedRows {
  int64_t rows, width;
  int pitch;  // elements from one row to the next

  __device__ int64_t At(int64_t b, int64_t h) const { return b * rows * pitch + h * width; }
};

// The rows of an activation [B, rows, heads * width] that are dense.
template <typename T>
__device__ PitchedRows DenseRows(const Terms<T>& terms, int64_t rows, int64_t width) {
  return {rows, width, static_cast<int>(terms.heads * width)};
}

// The rows of example b and head h.
template <typename T>
__device__ Source<T> RowsAt(const T* from, const PitchedRows& all, int64_t b, int64_t h) {
  if (from == nullptr) return {};
  return {from + all.At(b, h), static_cast<int>(all.rows), static_cast<int>(all.width), all.pitch};
}

template <typename T>
__device__ Target<T> TargetAt(T* to, const PitchedRows& all, int64_t b, int64_t h,
                              bool accumulate) {
  return {to + all.At(b, h), static_cast<int>(all.rows), static_cast<int>(all.width), all.pitch,
          accumulate};
}

// The width of rows that are padded to multiples of 16 bytes.
template <typename T>
__host__ __device__ int PaddedWidth(int64_t width) {
  constexpr int kElements = Line<T>::kElements;
  return DivideUp(static_cast<int>(width), kElements) * kElements;
}

// The rows of the keys' positions in an array of PreparedTerms.
template <typename T>
__device__ Source<T> PositionRows(const Terms<T>& terms, const T* rows, int64_t width, int64_t b) {
  if (rows == nullptr) return {};
  const int padded = PaddedWidth<T>(width);
  return {rows, static_cast<int>(terms.keys), padded, padded,
          terms.key_positions == nullptr ? nullptr : terms.key_positions + b * terms.keys};
}

// The queries, u, a, b and, in the backward pass, dy.
template <typename T>
__device__ Side<T> Queries(const Terms<T>& terms, const T* dy, int64_t b, int64_t h) {
  const auto dense = [&](const T* from, int64_t width) {
    return RowsAt(from, DenseRows(terms, terms.queries, width), b, h);
  };
  return {RowsAt(terms.query, {terms.queries, terms.head_size, terms.query_pitch}, b, h),
          dense(terms.u, terms.features), dense(terms.a, terms.a_size),
          dense(terms.b, terms.b_size), dense(dy, terms.head_size)};
}

// The keys, their columns of the table of positions, the unit vectors that pick their elements of a
// and b, and the values.
template <typename T>
__device__ Side<T> Keys(const Terms<T>& terms, int64_t b, int64_t h) {
  Source<T> dense = PositionRows(terms, terms.position_rows, terms.features, b);
  if (terms.positions_per_head) dense.from += h * terms.position_extent * dense.width;
  return {RowsAt(terms.key, {terms.keys, terms.head_size, terms.key_pitch}, b, h), dense,
          PositionRows(terms, terms.a_units, terms.a_size, b),
          PositionRows(terms, terms.b_units, terms.b_size, b),
          RowsAt(terms.value, {terms.keys, terms.head_size, terms.value_pitch}, b, h)};
}

__device__ inline SegmentRange RangeOf(const SegmentRange* ranges, int64_t b, int64_t rows,
                                       int first, int count) {
  const auto chunks = static_cast<int>(Chunks(rows));
  ranges += b * chunks;
  SegmentRange range = ranges[first / kColumns];
  for (int chunk = first / kColumns + 1; chunk * kColumns < first + count && chunk < chunks;
       ++chunk) {
    const SegmentRange next = ranges[chunk];
    range.lowest = next.lowest < range.lowest ? next.lowest : range.lowest;
    range.highest = next.highest > range.highest ? next.highest : range.highest;
    range.any_zero = range.any_zero || next.any_zero;
  }
  return range;
}

// The masks that a tile of scores needs. Queries of segment 0 and those beyond the last do not
// count: whatever their scores are, their rows of y are set to zero, and so are their probabilities
// in the backward pass.
struct TileMask {
  bool ends = false;      // some keys are beyond the last, or later than a query may read
  bool segments = false;  // some segments differ
  bool pattern = false;   // window or key blocks leave some out
};

// The place of a tile of scores: its first own row and its first passing row.
struct Place {
  int own = 0, passing = 0;
  TileMask mask;
};

// Whether key blocks leave all keys of a tile out, or some.
struct Omission {
  bool all, some;
};
template <typename T>
__device__ Omission OmissionOfBlocks(const Terms<T>& terms, int64_t h, int64_t first_query,
                                     int64_t last_query, int64_t first_key, int64_t last_key) {
  last_query = last_query < terms.queries ? last_query : terms.queries - 1;
  last_key = last_key < terms.keys ? last_key : terms.keys - 1;
  Omission result{true, false};
  for (int64_t q = first_query / terms.block; q <= last_query / terms.block; ++q) {
    for (int64_t k = first_key / terms.block; k <= last_key / terms.block; ++k) {
      const bool read = terms.ReadsBlock(h, q, k);
      result = {result.all && !read, result.some || !read};
    }
  }
  return result;
}

// Finds the mask of a tile. Returns whether any of its elements may be allowed.
template <typename T>
__device__ bool FindMask(const Terms<T>& terms, int64_t b, int64_t h, int first_query,
                         int query_count, int first_key, int key_count, TileMask& mask) {
  const int last_query = first_query + query_count - 1, last_key = first_key + key_count - 1;
  const int64_t start = first_query + terms.Start();
  const Pattern::Extent extent = terms.pattern.Of(start, query_count, first_key, key_count);
  bool any = extent.some, later = terms.pattern.causal && last_key > start;
  if (terms.prefix_ends != nullptr) {
    const SegmentRange ends =
        RangeOf(terms.prefix_ranges, b, terms.queries, first_query, query_count);
    any = any || first_key < ends.highest;
    later = later && (ends.any_zero || last_key >= ends.lowest);
  }
  mask = {later || last_key >= terms.keys, false, terms.pattern.is_window() && !extent.all};
  if (terms.key_blocks != nullptr && any) {
    const Omission omission =
        OmissionOfBlocks(terms, h, first_query, last_query, first_key, last_key);
    any = !omission.all;
    mask.pattern = omission.some;
  }
  if (terms.query_segments != nullptr && any) {
    const SegmentRange of_queries =
        RangeOf(terms.query_ranges, b, terms.queries, first_query, query_count);
    const SegmentRange of_keys = RangeOf(terms.key_ranges, b, terms.keys, first_key, key_count);
    any = of_queries.lowest <= of_keys.highest && of_keys.lowest <= of_queries.highest;
    mask.segments = of_keys.any_zero || of_queries.lowest != of_keys.highest ||
                    of_queries.highest != of_keys.lowest;
  }
  return any;
}

// Moves `place` to the next passing tile that may have allowed elements. Returns false if there is
// none. At first place.passing must be minus one tile.
template <bool kOfKeys, typename T>
__device__ bool FindNext(const Terms<T>& terms, int64_t b, int64_t h, int own_rows, Place& place) {
  const auto end = static_cast<int>(kOfKeys ? terms.queries : terms.keys);
  for (place.passing += kPassing<T>; place.passing < end; place.passing += kPassing<T>) {
    if (kOfKeys
            ? FindMask(terms, b, h, place.passing, kPassing<T>, place.own, own_rows, place.mask)
            : FindMask(terms, b, h, place.own, own_rows, place.passing, kPassing<T>, place.mask)) {
      return true;
    }
  }
  return false;
}

// Calls body(score, of_row(its row), of_column(its column)) for each score of a warp's tile.
template <int kM, int kN, typename OfRow, typename OfColumn, typename Body>
__device__ __forceinline__ void ForElements(const Place& place, Fragment (&scores)[kM][kN],
                                            const OfRow& of_row, const OfColumn& of_column,
                                            const Body& body) {
  using Row = decltype(of_row(0));
  using Column = decltype(of_column(0));
  Row rows[kM][2];
#pragma unroll
  for (int m = 0; m < kM; ++m) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      rows[m][half] = of_row(place.own + (WarpIndex() * kM + m) * 16 + FragmentRow(2 * half));
    }
  }
#pragma unroll
  for (int n = 0; n < kN; ++n) {
    const Column columns[] = {of_column(place.passing + 8 * n + FragmentColumn(0)),
                              of_column(place.passing + 8 * n + FragmentColumn(1))};
#pragma unroll
    for (int m = 0; m < kM; ++m) {
#pragma unroll
      for (int k = 0; k < 4; ++k) body(scores[m][n].sum[k], rows[m][k / 2], columns[k % 2]);
    }
  }
}

// Calls body(score, of_query(i), of_key(j)) for each score, with the numbers of its query and key,
// which may be beyond the last.
template <bool kOfKeys, int kM, int kN, typename OfQuery, typename OfKey, typename Body>
__device__ __forceinline__ void ForScores(const Place& place, Fragment (&scores)[kM][kN],
                                          const OfQuery& of_query, const OfKey& of_key,
                                          const Body& body) {
  if constexpr (kOfKeys) {
    ForElements(place, scores, of_key, of_query,
                [&](float& score, auto key, auto query) { body(score, query, key); });
  } else {
    ForElements(place, scores, of_query, of_key, body);
  }
}

// Sets scores[m][n].sum[k] to entry(d), where d is the difference of the element's key and query,
// counted from the lane's first ones. Equal differences share a call.
template <bool kOfKeys, int kM, int kN, typename Entry>
__device__ __forceinline__ void SetDiagonals(Fragment (&scores)[kM][kN], const Entry& entry) {
#pragma unroll
  for (int m = 0; m < kM; ++m) {
#pragma unroll
    for (int n = 0; n < kN; ++n) {
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        const int difference = 8 * n + k % 2 - 16 * m - k / 2 * 8;
        scores[m][n].sum[k] = entry(kOfKeys ? -difference : difference);
      }
    }
  }
}

// Whether all queries and keys of a warp's tile exist.
template <bool kOfKeys, int kM, int kN, typename T>
__device__ __forceinline__ bool IsWhole(const Terms<T>& terms, const Place& place) {
  const auto queries = static_cast<int>(terms.queries), keys = static_cast<int>(terms.keys);
  return place.own + (WarpIndex() + 1) * kM * 16 <= (kOfKeys ? keys : queries) &&
         place.passing + 8 * kN <= (kOfKeys ? queries : keys);
}

// Where a warp's tile has one bias: 1 if all its keys come bias_reach or more after its queries, -1
// if they come so far before them, else 0.
template <bool kOfKeys, int kM, int kN, typename T>
__device__ __forceinline__ int FarSide(const Terms<T>& terms, const Place& place) {
  if (terms.bias_reach == 0) return 0;
  constexpr int kOwn = 16 * kM, kPassed = 8 * kN;
  const int own = place.own + WarpIndex() * kOwn;
  const int least =
      kOfKeys ? own - place.passing - (kPassed - 1) : place.passing - own - (kOwn - 1);
  if (least >= terms.bias_reach) return 1;
  return least + kOwn + kPassed - 2 <= -terms.bias_reach ? -1 : 0;
}

// Sets a warp's scores to the bias. Beyond its ends they become any of its entries.
template <bool kOfKeys, int kM, int kN, typename T>
__device__ __forceinline__ void SetBias(const Terms<T>& terms, int64_t h, const Place& place,
                                        Fragment (&scores)[kM][kN]) {
  const auto queries = static_cast<int>(terms.queries), keys = static_cast<int>(terms.keys);
  const int first_own = place.own + WarpIndex() * kM * 16, last = queries + keys - 2;
  const int own = first_own + FragmentRow(0), passing = place.passing + FragmentColumn(0);
  const float* bias = terms.bias + h * (last + 1);
  if (const int side = FarSide<kOfKeys, kM, kN>(terms, place); side != 0) {
    const float far = bias[queries - 1 + terms.FarDifference(side)];
    return SetDiagonals<kOfKeys>(scores, [far](int) { return far; });
  }
  const int at = (kOfKeys ? own - passing : passing - own) + queries - 1;
  if (IsWhole<kOfKeys, kM, kN>(terms, place)) {
    SetDiagonals<kOfKeys>(scores, [from = bias + at](int d) { return from[d]; });
  } else {
    SetDiagonals<kOfKeys>(scores, [&](int d) {
      const int entry = at + d < last ? at + d : last;
      return bias[entry > 0 ? entry : 0];
    });
  }
}

// Two neighbouring elements of a table, which one access loads.
struct alignas(8) Pair {
  float element[2];
};

// Calls body(score, its element of the table) for each score of a tile that is whole (IsWhole), if
// the table has the scores' rows and columns, and even columns in pairs unless kOfKeys. All
// elements are a fixed distance from the lane's first, so that they take few instructions.
template <bool kOfKeys, int kM, int kN, typename T, typename Body>
__device__ __forceinline__ void ForWholeTable(const Terms<T>& terms, int64_t h, const Place& place,
                                              Fragment (&scores)[kM][kN], const Body& body) {
  const int own = place.own + WarpIndex() * kM * 16 + FragmentRow(0);
  const int passing = place.passing + FragmentColumn(0);
  const int stride = terms.table_queries == 1 ? 0 : static_cast<int>(terms.table_keys);
  const float* first = terms.TableRow(0, h, kOfKeys ? passing : own) + (kOfKeys ? own : passing);
#pragma unroll
  for (int n = 0; n < kN; ++n) {
#pragma unroll
    for (int m = 0; m < kM; ++m) {
      if constexpr (kOfKeys) {
#pragma unroll
        for (int k = 0; k < 4; ++k) {
          body(scores[m][n].sum[k], first[(8 * n + k % 2) * stride + 16 * m + k / 2 * 8]);
        }
      } else {
#pragma unroll
        for (int k = 0; k < 4; k += 2) {
          const float* from = first + (16 * m + k / 2 * 8) * stride + 8 * n;
          const Pair values = *reinterpret_cast<const Pair*>(from);
          body(scores[m][n].sum[k], values.element[0]);
          body(scores[m][n].sum[k + 1], values.element[1]);
        }
      }
    }
  }
}

// Adds the table to a warp's scores. Beyond its ends it repeats elements.
template <bool kOfKeys, int kM, int kN, typename T>
__device__ __forceinline__ void AddTable(const Terms<T>& terms, int64_t b, int64_t h,
                                         const Place& place, Fragment (&scores)[kM][kN]) {
  const auto last_query = static_cast<int>(terms.queries) - 1;
  const auto last_key = static_cast<int>(terms.keys) - 1;
  const auto row_of = [&](int i) { return terms.TableRow(b, h, i < last_query ? i : last_query); };
  if (!kOfKeys && terms.table_in_pairs) {
    const float* rows[kM][2];
#pragma unroll
    for (int m = 0; m < kM; ++m) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        rows[m][half] = row_of(place.own + (WarpIndex() * kM + m) * 16 + FragmentRow(2 * half));
      }
    }
#pragma unroll
    for (int n = 0; n < kN; ++n) {
      const int column = place.passing + 8 * n + FragmentColumn(0);
      const int pair = column < last_key ? column : last_key / 2 * 2;
#pragma unroll
      for (int m = 0; m < kM; ++m) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const Pair values = *reinterpret_cast<const Pair*>(rows[m][half] + pair);
          scores[m][n].sum[2 * half] += values.element[0];
          scores[m][n].sum[2 * half + 1] += values.element[1];
        }
      }
    }
    return;
  }
  ForScores<kOfKeys>(
      place, scores, row_of,
      [&](int j) { return static_cast<int>(terms.KeyPosition(b, j < last_key ? j : last_key)); },
      [](float& score, const float* row, int column) { score += row[column]; });
}

// Sets a warp's scores to the terms that are not products.
template <bool kOfKeys, int kM, int kN, typename T>
__device__ __forceinline__ void StartScores(const Terms<T>& terms, int64_t b, int64_t h,
                                            const Place& place, Fragment (&scores)[kM][kN]) {
  const bool table = terms.table != nullptr;
  const bool whole = table && terms.ByRow() && (kOfKeys || terms.table_in_pairs) &&
                     IsWhole<kOfKeys, kM, kN>(terms, place);
  if (terms.bias != nullptr) {
    SetBias<kOfKeys>(terms, h, place, scores);
  } else if (whole) {
    return ForWholeTable<kOfKeys>(terms, h, place, scores,
                                  [](float& score, float element) { score = element; });
  } else {
    SetDiagonals<kOfKeys>(scores, [](int) { return 0.0f; });
  }
  if (whole) {
    ForWholeTable<kOfKeys>(terms, h, place, scores,
                           [](float& score, float element) { score += element; });
  } else if (table) {
    AddTable<kOfKeys>(terms, b, h, place, scores);
  }
}

// Adds the products of `count` tiles, the first of which are `own` and `passing`.
template <int kM, int kN, typename T>
__device__ __forceinline__ void AddScoresOfTiles(int count, const T* own, const T* passing,
                                                 Fragment (&sums)[kM][kN]) {
  for (int c = 0; c < count; ++c) {
    AddScores(WarpRows<kM>(own + c * kOwnTile<T, kM>), passing + c * kPassingTile<T>, sums);
  }
}

// Sets a warp's factors to the products of the tiles of a or b, the first of which are `own` and
// `passing`.
template <int kM, int kN, typename T>
__device__ __forceinline__ void SetFactors(const Source<T>& source, const T* own, const T* passing,
                                           Fragment (&factors)[kM][kN]) {
#pragma unroll
  for (int m = 0; m < kM; ++m) {
#pragma unroll
    for (int n = 0; n < kN; ++n) factors[m][n] = {};
  }
  for (int c = 0; c < source.TileCount(); ++c) {
    AddScores(WarpRows<kM>(own + c * kOwnTile<T, kM>), passing + c * kPassingTile<T>, factors,
              source.width - c * kColumns);
  }
}

// The number of fragments of scores whose factors a warp computes at a time; all at once would need
// too many registers.
constexpr int kFactorFragments = 2;

// Adds to a warp's scores the products of the features and those of the factors. `own` and
// `passing` are the tiles of both sides in the order in which Side copies them.
template <int kM, int kN, typename T>
__device__ __forceinline__ void AddProducts(const Side<T>& side, const T* own, const T* passing,
                                            Fragment (&scores)[kM][kN]) {
  const int features = side.Features(), factors = features + side.a.TileCount();
  AddScoresOfTiles(features, own, passing, scores);
  if (side.a.from == nullptr) return;
  const T *own_a = own + features * kOwnTile<T, kM>, *own_b = own + factors * kOwnTile<T, kM>;
  const T *passing_a = passing + features * kPassingTile<T>,
          *passing_b = passing + factors * kPassingTile<T>;
#pragma unroll
  for (int first = 0; first < kN; first += kFactorFragments) {
    const int rows = 8 * first * kTileStride<T>;
    Fragment a[kM][kFactorFragments], b[kM][kFactorFragments];
    SetFactors(side.a, own_a, passing_a + rows, a);
    SetFactors(side.b, own_b, passing_b + rows, b);
#pragma unroll
    for (int m = 0; m < kM; ++m) {
#pragma unroll
      for (int n = 0; n < kFactorFragments; ++n) {
#pragma unroll
        for (int k = 0; k < 4; ++k) {
          scores[m][first + n].sum[k] += a[m][n].sum[k] * b[m][n].sum[k];
        }
      }
    }
  }
}

// Scores that window or key blocks leave out become -inf. First finds out which ones in a loop that
// is not unrolled, because it would be most of the kernel's code.
template <bool kOfKeys, int kM, int kN, typename T>
__device__ __forceinline__ void MaskByPattern(const Terms<T>& terms, int64_t h, const Place& place,
                                              Fragment (&scores)[kM][kN]) {
  constexpr int kScores = 4;  // of a fragment
  const auto last_query = static_cast<int>(terms.queries) - 1;
  const int first_own = place.own + WarpIndex() * kM * 16;
  uint64_t left_out = 0;
#pragma unroll 1
  for (int e = 0; e < kM * kN * kScores; ++e) {
    const int k = e % kScores, n = e / kScores % kN, m = e / kScores / kN;
    const int own = first_own + 16 * m + FragmentRow(k);
    const int passing = place.passing + 8 * n + FragmentColumn(k);
    const int i = kOfKeys ? passing : own, j = kOfKeys ? own : passing;
    left_out |= uint64_t{!terms.Reads(h, i < last_query ? i : last_query, j)} << e;
  }
#pragma unroll
  for (int e = 0; e < kM * kN * kScores; ++e) {
    float& score = scores[e / kScores / kN][e / kScores % kN].sum[e % kScores];
    if (left_out >> e & 1) score = -INFINITY;
  }
}

// Scores that are not allowed become -inf, but for the queries that do not count (TileMask).
template <bool kOfKeys, int kM, int kN, typename T>
__device__ __forceinline__ void MaskScores(const Terms<T>& terms, int64_t b, int64_t h,
                                           const Place& place, Fragment (&scores)[kM][kN]) {
  const auto queries = static_cast<int>(terms.queries), keys = static_cast<int>(terms.keys);
  const auto number = [](int i) { return i; };
  if (place.mask.ends) {
    const int start = static_cast<int>(terms.Start()) + 1;
    const auto end_of = [&](int i) {
      if (!terms.pattern.causal) return keys;
      int end = i + start;
      if (terms.prefix_ends != nullptr && i < queries) {
        const int prefix_end = terms.prefix_ends[b * queries + i];
        end = end < prefix_end ? prefix_end : end;
      }
      return end < keys ? end : keys;
    };
    ForScores<kOfKeys>(place, scores, end_of, number, [](float& score, int end, int j) {
      if (j >= end) score = -INFINITY;
    });
  }
  if (place.mask.pattern) MaskByPattern<kOfKeys>(terms, h, place, scores);
  if (place.mask.segments) {
    const int32_t* of_queries = terms.query_segments + b * queries;
    const int32_t* of_keys = terms.key_segments + b * keys;
    ForScores<kOfKeys>(
        place, scores, [&](int i) { return i < queries ? of_queries[i] : 0; },
        [&](int j) { return j < keys ? of_keys[j] : 0; },
        [](float& score, int32_t of_query, int32_t of_key) {
          if (of_query != of_key) score = -INFINITY;
        });
  }
}

// Arrays that the tile kernels need, computed from the operands into the call's workspace.
class PreparedTerms {
 public:
  PreparedTerms(const Dimensions& z, std::span<const TensorType> inputs, WorkspaceLayout& layout);

  // Computes them and sets their addresses in `terms`.
  template <typename T>
  void Run(const KernelArguments& arguments, Terms<T>& terms) const;

 private:
  template <typename T>
  void FindRanges(const KernelArguments& arguments, Terms<T>& terms) const;

  size_t query_ranges_ = 0, key_ranges_ = 0, prefix_ranges_ = 0;
  size_t position_rows_ = 0, a_units_ = 0, b_units_ = 0;
};

// Calls body with whether the kernel for plain calls computes this one. There is none in f32, whose
// products take longer than all else.
template <typename T, typename Body>
void WithPlain(const Terms<T>& terms, const Body& body) {
  if constexpr (sizeof(T) == sizeof(BFloat16)) {
    if (terms.IsPlain()) return body(std::true_type());
  }
  body(std::false_type());
}

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
