// SPDX-License-Identifier: Apache-2.0
// The order in which every sum over ranks is taken: a binary tree whose left part holds the largest
// power of two of sources below their number, so 0+1, (0+1)+2, (0+1)+(2+3), ((0+1)+(2+3))+4.
// Subtrees of a power of two of neighbours are whole, which lets hosts sum their own ranks first,
// and ranks their own micro-batches.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <span>
#include <vector>

namespace syntra {

namespace internal {

inline constexpr int64_t kTreeBlock = 1024;

// Sums at most kTreeBlock elements from `offset` of every source; `out` overlaps no source.
template <typename T>
void TreeSumBlock(std::span<const T* const> sources, int64_t offset, int64_t count, T* out) {
  if (sources.size() == 1) {
    std::copy_n(sources[0] + offset, count, out);
    return;
  }
  if (sources.size() == 2) {
    const T* left = sources[0] + offset;
    const T* right = sources[1] + offset;
#pragma omp simd
    for (int64_t i = 0; i < count; ++i) out[i] = left[i] + right[i];
    return;
  }
  const size_t split = std::bit_floor(sources.size() - 1);
  std::array<T, kTreeBlock> right;
  TreeSumBlock(sources.first(split), offset, count, out);
  TreeSumBlock(sources.subspan(split), offset, count, right.data());
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) out[i] = out[i] + right[i];
}

}  // namespace internal

// out[i] = tree sum of sources[.][i], 0 <= i < count. `out` may be one of the sources.
template <typename T>
void TreeSum(std::span<const T* const> sources, T* out, int64_t count) {
  std::array<T, internal::kTreeBlock> block;
  for (int64_t offset = 0; offset < count; offset += internal::kTreeBlock) {
    const int64_t length = std::min(internal::kTreeBlock, count - offset);
    internal::TreeSumBlock(sources, offset, length, block.data());
    std::copy_n(block.data(), length, out + offset);
  }
}

// The levels of the tree below its root. If sources come one after another, this is the largest
// number of sums that wait for others.
inline int TreeLevels(int64_t sources) {
  return std::bit_width(static_cast<uint64_t>(sources) - 1);
}

// Tree sum of the rows of `table`, each as long as `sum`.
inline void TreeSumRows(std::span<const double> table, std::span<double> sum) {
  if (sum.empty()) return;
  std::vector<const double*> rows;
  for (size_t at = 0; at < table.size(); at += sum.size()) rows.push_back(table.data() + at);
  TreeSum<double>(rows, sum.data(), static_cast<int64_t>(sum.size()));
}

}  // namespace syntra
