// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/attention/scores.h"

#include "base/divide.h"

namespace syntra::attention {
namespace {

// Segments or ends of prefixes [B, rows] and the ranges of their chunks of 64 rows.
struct RangedRows {
  const int32_t* values = nullptr;
  int64_t rows = 0;
  SegmentRange* ranges = nullptr;
};
struct AllRangedRows {
  RangedRows queries, keys, prefixes;
};

// All lanes of a warp must call it.
__device__ SegmentRange RangeOfRows(const int32_t* values, int64_t count) {
  SegmentRange range{INT32_MAX, INT32_MIN, false};
  int zeros = 0;
  for (int64_t i = LaneIndex(); i < count; i += kWarp) {
    const int32_t value = values[i];
    zeros += value == 0 ? 1 : 0;
    if (value == 0) continue;
    range.lowest = value < range.lowest ? value : range.lowest;
    range.highest = value > range.highest ? value : range.highest;
  }
  for (int mask = kWarp / 2; mask > 0; mask /= 2) {
    const int32_t lowest = ShuffleXor(range.lowest, mask);
    const int32_t highest = ShuffleXor(range.highest, mask);
    range.lowest = lowest < range.lowest ? lowest : range.lowest;
    range.highest = highest > range.highest ? highest : range.highest;
  }
  range.any_zero = WarpSum(zeros) > 0;
  return range;
}

// A warp computes the range of a chunk. If there is a list of examples (Terms), an empty one needs
// no ranges.
__global__ void RangesKernel(const int32_t* examples, int64_t batch, AllRangedRows all) {
  if (examples != nullptr && examples[0] == 0) return;
  int64_t item = BlockIndex() * WarpCount() + WarpIndex();
  const auto find = [&](const RangedRows& of) {
    const int64_t chunks = Chunks(of.rows), items = batch * chunks;
    if (item >= 0 && item < items) {
      const int64_t b = item / chunks, first = item % chunks * kColumns, left = of.rows - first;
      const SegmentRange range =
          RangeOfRows(of.values + b * of.rows + first, left < kColumns ? left : kColumns);
      if (LaneIndex() == 0) of.ranges[item] = range;
    }
    item -= items;
  };
  find(all.queries);
  find(all.keys);
  find(all.prefixes);
}

// Transposes the table of positions, [heads, features, extent], to rows of `width` features.
template <typename T>
__global__ void PositionRowsKernel(const float* positions, int64_t heads, int64_t features,
                                   int64_t extent, int64_t width, T* rows) {
  const int64_t pieces = DivideUp(width, kEight);
  const int64_t item = BlockIndex() * ThreadCount() + ThreadIndex();
  if (item >= heads * pieces * extent) return;
  const int64_t n = item % extent, column = item / extent % pieces * kEight;
  const int64_t h = item / extent / pieces, left = width - column;
  Eight values;
  for (int k = 0; k < kEight; ++k) {
    const int64_t f = column + k;
    values[k] = f < features ? positions[(h * features + f) * extent + n] : 0.0f;
  }
  StoreEight(values, rows + (h * extent + n) * width + column,
             static_cast<int>(left < kEight ? left : kEight));
}

// For each position n = y Na + x the unit vectors of x and of y.
template <typename T>
__global__ void UnitRowsKernel(int a_size, int b_size, T* a_units, T* b_units) {
  const int a_width = PaddedWidth<T>(a_size), b_width = PaddedWidth<T>(b_size);
  ForThreadItems(int64_t{a_size} * b_size * (a_width + b_width), [&](int64_t item) {
    const auto n = static_cast<int>(item / (a_width + b_width));
    const auto column = static_cast<int>(item % (a_width + b_width));
    if (column < a_width) {
      a_units[int64_t{n} * a_width + column] = FromFloat<T>(column == n % a_size ? 1.0f : 0.0f);
    } else {
      const int y = column - a_width;
      b_units[int64_t{n} * b_width + y] = FromFloat<T>(y == n / a_size ? 1.0f : 0.0f);
    }
  });
}

}  // namespace

PreparedTerms::PreparedTerms(const Dimensions& z, std::span<const TensorType> inputs,
                             WorkspaceLayout& layout) {
  if (inputs[kQuerySegments].present()) {
    query_ranges_ = layout.Place(z.batch * Chunks(z.queries) * sizeof(SegmentRange));
    key_ranges_ = layout.Place(z.batch * Chunks(z.keys) * sizeof(SegmentRange));
  }
  if (inputs[kPrefixEnds].present()) {
    prefix_ranges_ = layout.Place(z.batch * Chunks(z.queries) * sizeof(SegmentRange));
  }
  const DType dtype = inputs[kValue].dtype;
  const auto place_rows = [&](int64_t rows, int64_t width) {
    return layout.Place(rows * AlignUp(width * SizeOf(dtype), kCopyBytes));
  };
  if (inputs[kU].present()) {
    position_rows_ =
        place_rows((z.positions_per_head ? z.heads : 1) * z.position_extent, z.features);
  }
  if (inputs[kA].present()) {
    a_units_ = place_rows(z.a_size * z.b_size, z.a_size);
    b_units_ = place_rows(z.a_size * z.b_size, z.b_size);
  }
}

template <typename T>
void PreparedTerms::FindRanges(const KernelArguments& arguments, Terms<T>& terms) const {
  constexpr int64_t kWarps = kThreads / kWarp;
  int64_t items = 0;
  const auto ranged = [&](const int32_t* values, int64_t rows, size_t place) -> RangedRows {
    if (values == nullptr) return {};
    items += terms.batch * Chunks(rows);
    return {values, rows, reinterpret_cast<SegmentRange*>(arguments.workspace + place)};
  };
  const AllRangedRows all{ranged(terms.query_segments, terms.queries, query_ranges_),
                          ranged(terms.key_segments, terms.keys, key_ranges_),
                          ranged(terms.prefix_ends, terms.queries, prefix_ranges_)};
  terms.query_ranges = all.queries.ranges;
  terms.key_ranges = all.keys.ranges;
  terms.prefix_ranges = all.prefixes.ranges;
  if (items == 0) return;
  Launch(arguments, {DivideUp(items, kWarps), kThreads}, RangesKernel, terms.examples, terms.batch,
         all);
}

template <typename T>
void PreparedTerms::Run(const KernelArguments& arguments, Terms<T>& terms) const {
  FindRanges(arguments, terms);
  const auto rows_at = [&](size_t place) {
    return reinterpret_cast<T*>(arguments.workspace + place);
  };
  if (terms.u != nullptr) {
    T* rows = rows_at(position_rows_);
    terms.position_rows = rows;
    const int64_t heads = terms.positions_per_head ? terms.heads : 1;
    const int64_t width = PaddedWidth<T>(terms.features);
    const int64_t items = heads * DivideUp(width, kEight) * terms.position_extent;
    Launch(arguments, {DivideUp(items, kThreads), kThreads}, PositionRowsKernel<T>, terms.positions,
           heads, terms.features, terms.position_extent, width, rows);
  }
  if (terms.a != nullptr) {
    T *a = rows_at(a_units_), *b = rows_at(b_units_);
    terms.a_units = a;
    terms.b_units = b;
    const int64_t width = PaddedWidth<T>(terms.a_size) + PaddedWidth<T>(terms.b_size);
    Launch(arguments, GridFor(terms.a_size * terms.b_size * width), UnitRowsKernel<T>,
           static_cast<int>(terms.a_size), static_cast<int>(terms.b_size), a, b);
  }
  terms.table_in_pairs = terms.ByRow() && terms.table_keys % 2 == 0 &&
                         reinterpret_cast<uintptr_t>(terms.table) % sizeof(Pair) == 0;
}

template void PreparedTerms::Run(const KernelArguments&, Terms<float>&) const;
template void PreparedTerms::Run(const KernelArguments&, Terms<BFloat16>&) const;

}  // namespace syntra::attention
