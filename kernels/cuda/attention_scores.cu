// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/attention_scores.h"

namespace syntra::attention {
namespace {

// A warp computes the range of 64 rows of an example. If there is a list of examples (Terms), an
// empty one needs no ranges.
__global__ void RangesKernel(const int32_t* examples, const int32_t* values, int64_t batch,
                             int64_t rows, SegmentRange* ranges) {
  if (examples != nullptr && examples[0] == 0) return;
  const int64_t chunks = Chunks(rows), item = BlockIndex() * WarpCount() + WarpIndex();
  if (item >= batch * chunks) return;
  SegmentRange range{INT32_MAX, INT32_MIN, false};
  int zeros = 0;
  for (int row = LaneIndex(); row < kColumns; row += kWarp) {
    const int64_t i = item % chunks * kColumns + row;
    if (i >= rows) break;
    const int32_t value = values[item / chunks * rows + i];
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
  if (LaneIndex() == 0) ranges[item] = range;
}

// Transposes the table of positions, [heads, features, extent], to rows of `width` features.
template <typename T>
__global__ void PositionRowsKernel(const float* positions, int64_t heads, int64_t features,
                                   int64_t extent, int64_t width, T* rows) {
  const int64_t pieces = (width + kEight - 1) / kEight;
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
  const int64_t stride = BlockCount() * ThreadCount();
  for (int64_t item = BlockIndex() * ThreadCount() + ThreadIndex();
       item < int64_t{a_size} * b_size * (a_width + b_width); item += stride) {
    const auto n = static_cast<int>(item / (a_width + b_width));
    const auto column = static_cast<int>(item % (a_width + b_width));
    if (column < a_width) {
      a_units[int64_t{n} * a_width + column] = FromFloat<T>(column == n % a_size ? 1.0f : 0.0f);
    } else {
      const int y = column - a_width;
      b_units[int64_t{n} * b_width + y] = FromFloat<T>(y == n / a_size ? 1.0f : 0.0f);
    }
  }
}

int64_t BlocksFor(int64_t items, int64_t per_block) { return (items + per_block - 1) / per_block; }

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
void PreparedTerms::Run(const KernelArguments& arguments, Terms<T>& terms) const {
  constexpr int64_t kWarps = kThreads / kWarp;
  const auto find_ranges = [&](const int32_t* values, int64_t rows, size_t place) {
    auto* ranges = reinterpret_cast<SegmentRange*>(arguments.workspace + place);
    Launch(arguments, {BlocksFor(terms.batch * Chunks(rows), kWarps), kThreads}, RangesKernel,
           terms.examples, values, terms.batch, rows, ranges);
    return ranges;
  };
  if (terms.query_segments != nullptr) {
    terms.query_ranges = find_ranges(terms.query_segments, terms.queries, query_ranges_);
    terms.key_ranges = find_ranges(terms.key_segments, terms.keys, key_ranges_);
  }
  if (terms.prefix_ends != nullptr) {
    terms.prefix_ranges = find_ranges(terms.prefix_ends, terms.queries, prefix_ranges_);
  }
  const auto rows_at = [&](size_t place) {
    return reinterpret_cast<T*>(arguments.workspace + place);
  };
  if (terms.u != nullptr) {
    T* rows = rows_at(position_rows_);
    terms.position_rows = rows;
    const int64_t heads = terms.positions_per_head ? terms.heads : 1;
    const int64_t width = PaddedWidth<T>(terms.features);
    const int64_t items = heads * BlocksFor(width, kEight) * terms.position_extent;
    Launch(arguments, {BlocksFor(items, kThreads), kThreads}, PositionRowsKernel<T>,
           terms.positions, heads, terms.features, terms.position_extent, width, rows);
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
