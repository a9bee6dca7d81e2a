// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/attention_scores.h"

namespace syntra::attention {
namespace {

// A warp computes the range of 64 rows of an example.
__global__ void RangesKernel(const int32_t* values, int64_t batch, int64_t rows,
                             SegmentRange* ranges) {
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

int64_t BlocksFor(int64_t items, int64_t per_block) { return (items + per_block - 1) / per_block; }

template <typename T>
constexpr size_t kLine = Line<T>::kElements;

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
  if (z.features > 0) {
    const int64_t heads = z.positions_per_head ? z.heads : 1;
    position_rows_ = layout.Place(heads * z.position_extent *
                                  AlignUp(z.features * SizeOf(inputs[kU].dtype), kCopyBytes));
  }
}

template <typename T>
void PreparedTerms::Run(const KernelArguments& arguments, Terms<T>& terms) const {
  constexpr int64_t kWarps = kThreads / kWarp;
  const auto find_ranges = [&](const int32_t* values, int64_t rows, size_t place) {
    auto* ranges = reinterpret_cast<SegmentRange*>(arguments.workspace + place);
    Launch(arguments, {BlocksFor(terms.batch * Chunks(rows), kWarps), kThreads}, RangesKernel,
           values, terms.batch, rows, ranges);
    return ranges;
  };
  if (terms.query_segments != nullptr) {
    terms.query_ranges = find_ranges(terms.query_segments, terms.queries, query_ranges_);
    terms.key_ranges = find_ranges(terms.key_segments, terms.keys, key_ranges_);
  }
  if (terms.prefix_ends != nullptr) {
    terms.prefix_ranges = find_ranges(terms.prefix_ends, terms.queries, prefix_ranges_);
  }
  if (terms.u != nullptr) {
    T* rows = reinterpret_cast<T*>(arguments.workspace + position_rows_);
    const int64_t heads = terms.positions_per_head ? terms.heads : 1;
    terms.position_rows = rows;
    terms.position_width = static_cast<int64_t>(AlignUp(terms.features, kLine<T>));
    const int64_t items = heads * BlocksFor(terms.position_width, kEight) * terms.position_extent;
    Launch(arguments, {BlocksFor(items, kThreads), kThreads}, PositionRowsKernel<T>,
           terms.positions, heads, terms.features, terms.position_extent, terms.position_width,
           rows);
  }
}

template void PreparedTerms::Run(const KernelArguments&, Terms<float>&) const;
template void PreparedTerms::Run(const KernelArguments&, Terms<BFloat16>&) const;

}  // namespace syntra::attention
