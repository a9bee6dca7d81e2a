// SPDX-License-Identifier: Apache-2.0
// The score terms of attention on the GPU (kernels/README.md, "attention"): their operands, and the
// assignment of tiles to blocks.
#pragma once

#include "base/divide.h"
#include "kernels/attention_call.h"
#include "kernels/cuda/attention/tiles.h"
#include "kernels/cuda/launch.h"
#include "kernels/operands.h"

namespace syntra::attention {

using namespace gpu;

constexpr int64_t kLargestHead = 128;

// Whether int holds what the kernels count: rows of an example's heads, tiles of all, and elements
// of the rows of a tile.
inline bool FitInt(const Dimensions& z) {
  constexpr int64_t kLeastRows = 64, kMostRows = 256;  // of a tile
  const int64_t rows = DivideUp(std::max(z.queries, z.keys), kMostRows) * kMostRows * z.heads;
  const int64_t width = std::max({z.query_pitch, z.key_pitch, z.value_pitch, z.table_keys,
                                  z.heads * std::max({z.features, z.a_size, z.b_size})});
  return gpu::FitInt({rows, z.batch * rows / kLeastRows, kMostRows * width});
}

// Calls body with the smallest head size that kernels are compiled for and that is large enough.
template <typename Body>
void WithHeadSize(int64_t head_size, const Body& body) {
  if (head_size <= 32) return body(std::integral_constant<int, 32>());
  if (head_size <= 64) return body(std::integral_constant<int, 64>());
  return body(std::integral_constant<int, kLargestHead>());
}

// The range of the segments, or of the ends of prefixes, of 64 rows, without those that are 0, and
// whether any is 0.
struct SegmentRange {
  int32_t lowest, highest;
  bool any_zero;
};

template <typename T>
struct Terms {
  int64_t batch, queries, keys, heads, head_size, features;
  const T *query, *key, *value, *u;
  int query_pitch, key_pitch, value_pitch;  // elements from one row to the next
  const float* positions;                   // [F, N] or [H, F, N]
  int64_t position_extent;
  bool positions_per_head;
  const T *a, *b;
  int64_t a_size, b_size;
  const float* table;
  int64_t table_heads, table_queries, table_keys;
  const float* bias;
  int bias_reach;
  const int32_t *query_segments, *key_segments, *query_positions, *key_positions, *prefix_ends;
  const int32_t* query_start = nullptr;  // set by attention, which alone has this input
  Pattern pattern;
  const int32_t* key_blocks;  // [H or 1, blocks of queries, blocks read]
  int64_t block, blocks_read, block_heads;
  // The examples to compute: their number, then their indices in ascending order; null: all.
  const int32_t* examples = nullptr;
  // Set by PreparedTerms (scores.h). Rows of type T, padded with zeros to multiples of 16 bytes:
  // the columns of `positions`, [H or 1, N, width]; for each position n the unit vectors (one-hot)
  // of n mod Na and of n div Na, [Na * Nb, width]. Ranges of segments, [B, chunks of rows].
  const T *position_rows = nullptr, *a_units = nullptr, *b_units = nullptr;
  bool table_in_pairs = false;  // even columns of the table begin at multiples of 8 bytes
  const SegmentRange *query_ranges = nullptr, *key_ranges = nullptr, *prefix_ranges = nullptr;

  // From the inputs that attention and attention_grad share.
  static Terms Of(const Dimensions& z, const KernelArguments& arguments) {
    const auto in = [&]<typename Element>(int i, Element) {
      return i < std::ssize(arguments.inputs) ? syntra::Input<Element>(arguments, i) : nullptr;
    };
    return {.batch = z.batch,
            .queries = z.queries,
            .keys = z.keys,
            .heads = z.heads,
            .head_size = z.head_size,
            .features = z.features,
            .query = in(kQuery, T{}),
            .key = in(kKey, T{}),
            .value = in(kValue, T{}),
            .u = in(kU, T{}),
            .query_pitch = static_cast<int>(z.query_pitch),
            .key_pitch = static_cast<int>(z.key_pitch),
            .value_pitch = static_cast<int>(z.value_pitch),
            .positions = in(kPositions, float{}),
            .position_extent = z.position_extent,
            .positions_per_head = z.positions_per_head,
            .a = in(kA, T{}),
            .b = in(kB, T{}),
            .a_size = z.a_size,
            .b_size = z.b_size,
            .table = in(kTable, float{}),
            .table_heads = z.table_heads,
            .table_queries = z.table_queries,
            .table_keys = z.table_keys,
            .bias = in(kBias, float{}),
            .bias_reach = static_cast<int>(std::min<int64_t>(z.bias_reach, INT32_MAX)),
            .query_segments = in(kQuerySegments, int32_t{}),
            .key_segments = in(kKeySegments, int32_t{}),
            .query_positions = in(kQueryPositions, int32_t{}),
            .key_positions = in(kKeyPositions, int32_t{}),
            .prefix_ends = in(kPrefixEnds, int32_t{}),
            .pattern = z.pattern,
            .key_blocks = in(kKeyBlocks, int32_t{}),
            .block = z.block,
            .blocks_read = z.blocks_read,
            .block_heads = z.block_heads};
  }

  __device__ int64_t ExampleCount() const { return examples != nullptr ? examples[0] : batch; }
  __device__ int64_t Example(int64_t n) const { return examples != nullptr ? examples[1 + n] : n; }

  __device__ int64_t Start() const { return query_start != nullptr ? *query_start : 0; }
  // The indices of a query and a key in table, positions, a and b.
  __device__ int64_t QueryPosition(int64_t b, int64_t i) const {
    return query_positions != nullptr ? query_positions[b * queries + i] : i + Start();
  }
  __device__ int64_t KeyPosition(int64_t b, int64_t j) const {
    return key_positions != nullptr ? key_positions[b * keys + j] : j;
  }

  // The entry of the table of positions for key j; zero beyond the end.
  __device__ float PositionAt(int64_t b, int64_t h, int64_t j, int64_t feature) const {
    if (j >= keys || feature >= features) return 0.0f;
    const int64_t row = (positions_per_head ? h : 0) * features + feature;
    return positions[row * position_extent + KeyPosition(b, j)];
  }

  // Whether the table's rows and columns correspond to those of the scores.
  __host__ __device__ bool ByRow() const {
    return query_positions == nullptr && key_positions == nullptr;
  }

  // Whether scores are those of a Transformer: products of queries and keys, perhaps with a bias,
  // and masked by order and segments alone. There is a kernel for these calls alone (AssumePlain).
  bool IsPlain() const {
    return query != nullptr && u == nullptr && a == nullptr && table == nullptr &&
           prefix_ends == nullptr && query_start == nullptr && !pattern.is_window() &&
           key_blocks == nullptr && examples == nullptr;
  }

  // The terms without u and positions. In a call without queries and keys, u takes the place of the
  // queries, and the rows of the positions take that of the keys: their products are alike.
  Terms AsProducts() const {
    Terms products = *this;
    if (query == nullptr) {
      products.query = u;
      products.query_pitch = static_cast<int>(heads * features);
      products.key = position_rows;
      products.key_pitch = static_cast<int>(features);
    }
    products.u = products.position_rows = nullptr;
    products.positions = nullptr;
    return products;
  }
  // In a kernel for products of queries and keys: tells the compiler what they lack.
  __device__ void AssumeProducts() {
    u = a = b = a_units = b_units = position_rows = nullptr;
    positions = nullptr;
    prefix_ends = query_start = key_blocks = examples = nullptr;
    pattern.window = 0;
  }
  __device__ void AssumePlain() {
    AssumeProducts();
    table = nullptr;
  }
  __device__ void AssumeByRow() { query_positions = key_positions = nullptr; }
  __device__ void AssumeFactors() {
    query = key = u = a_units = b_units = position_rows = nullptr;
    positions = table = nullptr;
    key_positions = prefix_ends = query_start = key_blocks = examples = nullptr;
    pattern.window = 0;
  }

  // Whether queries of a block of head h read keys of another.
  __device__ bool ReadsBlock(int64_t h, int64_t query_block, int64_t key_block) const {
    const int64_t head = block_heads == 1 ? 0 : h, all = DivideUp(queries, block);
    const int32_t* read = key_blocks + (head * all + query_block) * blocks_read;
    for (int64_t n = 0; n < blocks_read; ++n) {
      if (read[n] == key_block) return true;
    }
    return false;
  }

  // Whether key j is in the prefix of query i.
  __device__ bool InPrefix(int64_t b, int64_t i, int64_t j) const {
    return prefix_ends != nullptr && j < prefix_ends[b * queries + i];
  }

  // Whether pattern and key blocks let query i read key j.
  __device__ bool Reads(int64_t h, int64_t i, int64_t j) const {
    return pattern.Allows(i + Start(), j) &&
           (key_blocks == nullptr || ReadsBlock(h, i / block, j / block));
  }

  __device__ bool Allows(int64_t b, int64_t h, int64_t i, int64_t j) const {
    if (i >= queries || j >= keys) return false;
    if (!Reads(h, i, j) && !InPrefix(b, i, j)) return false;
    if (query_segments == nullptr) return true;
    const int32_t segment = query_segments[b * queries + i];
    return segment != 0 && segment == key_segments[b * keys + j];
  }

  // The row of the table for query i.
  __device__ const float* TableRow(int64_t b, int64_t h, int64_t i) const {
    const int m = table_queries == 1 ? 0 : static_cast<int>(QueryPosition(b, i));
    const float* first = table + (table_heads == 1 ? 0 : h) * table_queries * table_keys;
    return first + int64_t{m} * static_cast<int>(table_keys);
  }

  // The difference of key and query whose bias all tiles have that are far on a side (FarSide).
  __device__ int FarDifference(int side) const {
    const int most = static_cast<int>(side > 0 ? keys : queries) - 1;
    return side * (bias_reach < most ? bias_reach : most);
  }

  // The sum of bias and table.
  __device__ float BiasAndTable(int64_t b, int64_t h, int64_t i, int64_t j) const {
    float sum = bias != nullptr ? bias[h * (queries + keys - 1) + j - i + queries - 1] : 0.0f;
    if (table != nullptr) sum += TableRow(b, h, i)[KeyPosition(b, j)];
    return sum;
  }
};

// The operands of attention_grad.
template <typename T>
struct Backward {
  Terms<T> terms;
  const T *y, *dy;
  const float* log_sum_exp;                  // [B, H, T]
  T *dquery, *dkey, *dvalue, *du, *da, *db;  // null: not needed
  float *dpositions, *dtable, *dbias;
  int dquery_pitch, dkey_pitch, dvalue_pitch;  // elements from one row to the next
  bool accumulate[kGradientOutputCount];
};

// A grid for `items` pieces of a call's work (ForItems). Only the device knows how long a list of
// examples is. With one the grid has no more blocks than run at once on an H100, so that it ends at
// once if the list is empty.
template <typename T>
Grid ItemGrid(const Terms<T>& terms, int64_t items, size_t shared_bytes) {
  constexpr int64_t kMostBlocks = 2 * kTunedMultiprocessors;
  SYNTRA_CHECK(gpu::FitInt({items}), "{} pieces of work", items);
  return {terms.examples != nullptr ? std::min(items, kMostBlocks) : items, kTileThreads,
          shared_bytes};
}

// Calls body(item) for this block's share of the items, if there are any examples. All threads of
// the block must call it. Items are int, as blocks are, because divisions of int64_t take long.
template <typename T, typename Body>
__device__ __forceinline__ void ForItems(const Terms<T>& terms, int64_t items, const Body& body) {
  if (terms.ExampleCount() == 0) return;
  for (int64_t item = BlockIndex(); item < items; item += BlockCount()) {
    body(static_cast<int>(item));
    SyncThreads();  // the next item reuses shared memory
  }
}

}  // namespace syntra::attention
