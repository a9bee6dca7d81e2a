// The score terms of attention on the GPU (kernels/README.md, "attention"): where each lies, and
// how a tile of scores is made of them.
#pragma once

#include "kernels/cuda/launch.h"
#include "kernels/cuda/mma.h"
#include "kernels/operands.h"
#include "kernels/ops/attention.h"

namespace syntra::attention {

using namespace gpu;

// A block of four warps takes 64 queries; each warp has 16 of them against 64 keys at a time.
constexpr int kTile = 64, kTileWarps = kTile / 16, kTileThreads = kTileWarps * kWarp;
constexpr int kTileColumns = kTile / 8;  // fragments of a warp side by side
constexpr int kTileStride = SharedStride(kTile);
constexpr int64_t Tiles(int64_t count) { return (count + kTile - 1) / kTile; }

constexpr int64_t kLargestHead = 128;

// Calls body with the least head size that kernels are made for, as a constant.
template <typename Body>
void WithHeadSize(int64_t head_size, const Body& body) {
  if (head_size <= 32) return body(std::integral_constant<int, 32>());
  if (head_size <= 64) return body(std::integral_constant<int, 64>());
  return body(std::integral_constant<int, kLargestHead>());
}

template <typename T>
struct Terms {
  int64_t batch, queries, keys, heads, head_size, features;
  const T *query, *key, *value, *u;
  const float* positions;  // [F, N], or one for each head
  int64_t position_extent;
  bool positions_per_head;
  const T *a, *b;
  int64_t a_size, b_size;
  const float* table;
  int64_t table_heads, table_queries, table_keys;
  const float* bias;
  const int32_t *query_segments, *key_segments, *query_positions, *key_positions, *query_start;
  bool causal;
  // The examples that are computed: how many, then which, in ascending order; null: all.
  const int32_t* examples;

  // Of the inputs that attention and attention_grad share.
  static Terms Of(const Sizes& z, const KernelArguments& arguments) {
    const auto in = [&]<typename Element>(int i, Element) {
      return i < std::ssize(arguments.inputs) ? syntra::Input<Element>(arguments, i) : nullptr;
    };
    return {z.batch,
            z.queries,
            z.keys,
            z.heads,
            z.head_size,
            z.features,
            in(kQuery, T{}),
            in(kKey, T{}),
            in(kValue, T{}),
            in(kU, T{}),
            in(kPositions, float{}),
            z.position_extent,
            z.positions_per_head,
            in(kA, T{}),
            in(kB, T{}),
            z.a_size,
            z.b_size,
            in(kTable, float{}),
            z.table_heads,
            z.table_queries,
            z.table_keys,
            in(kBias, float{}),
            in(kQuerySegments, int32_t{}),
            in(kKeySegments, int32_t{}),
            in(kQueryPositions, int32_t{}),
            in(kKeyPositions, int32_t{}),
            nullptr,
            z.causal,
            nullptr};
  }

  __device__ int64_t ExampleCount() const { return examples != nullptr ? examples[0] : batch; }
  __device__ int64_t Example(int64_t n) const { return examples != nullptr ? examples[1 + n] : n; }

  __device__ int64_t Start() const { return query_start != nullptr ? *query_start : 0; }
  // By which a query and a key meet table, positions, a and b.
  __device__ int64_t QueryPosition(int64_t b, int64_t i) const {
    return query_positions != nullptr ? query_positions[b * queries + i] : i + Start();
  }
  __device__ int64_t KeyPosition(int64_t b, int64_t j) const {
    return key_positions != nullptr ? key_positions[b * keys + j] : j;
  }

  // Of the table of positions, for key j; zero beyond.
  __device__ float PositionAt(int64_t b, int64_t h, int64_t j, int64_t feature) const {
    if (j >= keys || feature >= features) return 0.0f;
    const int64_t row = (positions_per_head ? h : 0) * features + feature;
    return positions[row * position_extent + KeyPosition(b, j)];
  }

  __device__ bool Allows(int64_t b, int64_t i, int64_t j) const {
    if (i >= queries || j >= keys || (causal && j > i + Start())) return false;
    if (query_segments == nullptr) return true;
    const int32_t segment = query_segments[b * queries + i];
    return segment != 0 && segment == key_segments[b * keys + j];
  }

  // The terms that are no products of features.
  __device__ float Others(int64_t b_index, int64_t h, int64_t i, int64_t j) const {
    float sum = bias != nullptr ? bias[h * (queries + keys - 1) + j - i + queries - 1] : 0.0f;
    if (table == nullptr && a == nullptr) return sum;
    const int64_t n = KeyPosition(b_index, j);
    if (table != nullptr) {
      const int64_t m = table_queries == 1 ? 0 : QueryPosition(b_index, i);
      sum += table[((table_heads == 1 ? 0 : h) * table_queries + m) * table_keys + n];
    }
    if (a != nullptr) {
      const int64_t row = (b_index * queries + i) * heads + h;
      sum += ToFloat(a[row * a_size + n % a_size]) * ToFloat(b[row * b_size + n / a_size]);
    }
    return sum;
  }
};

// What attention_grad reads and writes.
template <typename T>
struct Backward {
  Terms<T> terms;
  const T *y, *dy;
  const float* log_sum_exp;                  // [B, H, T]
  float* means;                              // D, [B, H, T]
  T *dquery, *dkey, *dvalue, *du, *da, *db;  // null: not wanted
  float *dpositions, *dtable, *dbias;
  float* bias_parts;  // [query tiles, key tiles, H, diagonals of a tile]
  bool accumulate[kGradientOutputCount];

  __device__ int64_t RowOf(int64_t b, int64_t h, int64_t i) const {
    return (b * terms.heads + h) * terms.queries + i;
  }
};

// Blocks for `tiles` of each example and head. With a list of examples, whose length only the
// device knows, no more than are at work at once.
template <typename T>
Grid TileGrid(const Terms<T>& terms, int64_t tiles, size_t shared_bytes) {
  constexpr int64_t kMostBlocks = 132 * 8;
  const int64_t all = terms.batch * terms.heads * tiles;
  return {terms.examples != nullptr ? std::min(all, kMostBlocks) : all, kTileThreads, shared_bytes};
}

// Calls body(b, h, tile) for the block's share of the tiles; all threads must call it.
template <typename T, typename Body>
__device__ __forceinline__ void ForTiles(const Terms<T>& terms, int64_t tiles, const Body& body) {
  const int64_t end = terms.ExampleCount() * terms.heads * tiles;
  for (int64_t item = BlockIndex(); item < end; item += BlockCount()) {
    body(terms.Example(item / tiles / terms.heads), item / tiles % terms.heads, item % tiles);
    SyncThreads();  // shared memory is free again
  }
}

// Copies rows [first, first + 64) of the head's columns [column, column + 64) of an activation
// [B, rows, heads * width] to shared memory, zero beyond; all threads of the block.
template <typename T>
__device__ void LoadRows(const T* from, int64_t b, int64_t rows, int64_t heads, int64_t width,
                         int64_t h, int64_t first, int64_t column, T* to) {
  constexpr int kPieces = kTile / kEight;
  for (int item = ThreadIndex(); item < kTile * kPieces; item += kTileThreads) {
    const int row = item / kPieces, piece = item % kPieces * kEight;
    const int64_t left = first + row < rows ? width - column - piece : 0;
    const int count = static_cast<int>(left < 0 ? 0 : left < kEight ? left : kEight);
    const T* source = from + ((b * rows + first + row) * heads + h) * width + column + piece;
    StoreEight(LoadEight(source, count), to + row * kTileStride + piece, kEight);
  }
}

// The same for `columns` columns from `from`'s on, of which `left` are there, with rows and columns
// exchanged: to[column][row].
template <typename T>
__device__ void LoadColumns(const T* from, int64_t b, int64_t rows, int64_t heads, int64_t width,
                            int64_t h, int64_t first, int columns, int64_t left, T* to) {
  for (int item = ThreadIndex(); item < kTile * columns; item += kTileThreads) {
    const int row = item / columns, column = item % columns;
    const bool there = first + row < rows && column < left;
    const int64_t i = ((b * rows + first + row) * heads + h) * width + column;
    to[column * kTileStride + row] = there ? from[i] : FromFloat<T>(0.0f);
  }
}

// Entries of the table of positions for 64 keys and 64 features, one from the next by these steps.
template <typename T>
__device__ void LoadPositions(const Terms<T>& terms, int64_t b, int64_t h, int64_t first,
                              int64_t feature, int key_step, int feature_step, T* to) {
  for (int item = ThreadIndex(); item < kTile * kTile; item += kTileThreads) {
    const int key = item % kTile, column = item / kTile;
    to[key * key_step + column * feature_step] =
        FromFloat<T>(terms.PositionAt(b, h, first + key, feature + column));
  }
}

// Room for 64 queries and 64 keys with 64 of their features.
template <typename T>
struct FeatureTiles {
  alignas(16) T query[kTile * kTileStride];
  alignas(16) T key[kTile * kTileStride];
};

// Adds the products of the warp's 16 rows of `tiles.query` with those of `tiles.key`, once all
// threads have loaded them; afterwards they may load others.
template <typename T>
__device__ void AddFeatures(const FeatureTiles<T>& tiles, Fragment (&sums)[kTileColumns]) {
  SyncThreads();
  AddProduct(sums, tiles.query + WarpIndex() * 16 * kTileStride, kTileStride, tiles.key,
             kTileStride, kTile);
  SyncThreads();
}

// The scores of a warp's 16 queries against 64 keys, -inf where not allowed. All threads of the
// block, none of which may still use `tiles`.
template <typename T>
__device__ void Scores(const Terms<T>& terms, int64_t b, int64_t h, int64_t first_query,
                       int64_t first_key, FeatureTiles<T>& tiles,
                       Fragment (&scores)[kTileColumns]) {
  for (Fragment& fragment : scores) fragment = {};
  const int64_t query_features = terms.query != nullptr ? terms.head_size : 0;
  const int64_t u_features = terms.u != nullptr ? terms.features : 0;
  for (int64_t f = 0; f < query_features; f += kTile) {
    LoadRows(terms.query, b, terms.queries, terms.heads, terms.head_size, h, first_query, f,
             tiles.query);
    LoadRows(terms.key, b, terms.keys, terms.heads, terms.head_size, h, first_key, f, tiles.key);
    AddFeatures(tiles, scores);
  }
  for (int64_t f = 0; f < u_features; f += kTile) {
    LoadRows(terms.u, b, terms.queries, terms.heads, terms.features, h, first_query, f,
             tiles.query);
    LoadPositions(terms, b, h, first_key, f, kTileStride, 1, tiles.key);
    AddFeatures(tiles, scores);
  }
#pragma unroll
  for (int n = 0; n < kTileColumns; ++n) {
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      const int64_t i = first_query + WarpIndex() * 16 + FragmentRow(k);
      const int64_t j = first_key + n * 8 + FragmentColumn(k);
      scores[n].sum[k] =
          terms.Allows(b, i, j) ? scores[n].sum[k] + terms.Others(b, h, i, j) : -INFINITY;
    }
  }
}

// Stores a warp's 16 rows of a tile, or columns if `transposed`, to shared memory.
template <typename T>
__device__ void StoreTile(const Fragment (&tile)[kTileColumns], bool transposed, T* to) {
#pragma unroll
  for (int n = 0; n < kTileColumns; ++n) {
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      const int row = WarpIndex() * 16 + FragmentRow(k), column = n * 8 + FragmentColumn(k);
      to[transposed ? column * kTileStride + row : row * kTileStride + column] =
          FromFloat<T>(tile[n].sum[k]);
    }
  }
}

// Keys that no query of the 64 from `first_query` on may see begin here.
template <typename T>
__device__ int64_t KeyEnd(const Terms<T>& terms, int64_t first_query) {
  if (!terms.causal) return terms.keys;
  const int64_t end = first_query + kTile + terms.Start();
  return end < terms.keys ? end : terms.keys;
}

}  // namespace syntra::attention
