// attention_grad on the GPU. Tiles of probabilities P are recomputed from log_sum_exp; with dP = dY
// V^T and D_i = dy_i . y_i the gradient of the scores is dS = P (dP - D) (Dao et al. 2022,
// FlashAttention, appendix B.4). Every gradient is a sum that one block forms in a fixed order, so
// each side of the scores has a kernel of its own that recomputes the tiles it needs:
//
//   queries   dQ, dU            a block takes 64 queries and 64 columns, keys pass by
//   keys      dV, dK            a block takes 64 keys and 64 columns, queries pass by
//   outer     da, db            a block takes 64 queries, keys pass by
//   table     dtable, dbias     a block takes 64 x 64 scores, examples pass by
//   positions dpositions        a block takes 64 keys and 64 features, examples and queries pass by
//
// The shared class has kernels of its own (attention_shared.h) and leaves few examples to these.
#include "kernels/cuda/attention_shared.h"

namespace syntra {
namespace attention {
namespace {

// Elements from one row of a shared tile to the next: as many as the tile has columns and eight
// more, so that the lanes of a fragment meet different banks.
constexpr int SharedStride(int columns) { return columns + 8; }

// c[n] += A B[8 n .. 8 n + 8]^T: 16 rows of A and 8 kColumns rows of B, both `depth` elements long
// (a multiple of 16) and `a_stride`, `b_stride` apart.
template <int kColumns>
__device__ __forceinline__ void AddProduct(Fragment (&c)[kColumns], const BFloat16* a, int a_stride,
                                           const BFloat16* b, int b_stride, int depth) {
  const int line = LaneIndex() / 4, pair = LaneIndex() % 4 * 2;
  for (int k = pair; k < depth; k += 16) {
    const FragmentA rows = {PairAt(a + line * a_stride + k), PairAt(a + (line + 8) * a_stride + k),
                            PairAt(a + line * a_stride + k + 8),
                            PairAt(a + (line + 8) * a_stride + k + 8)};
#pragma unroll
    for (int n = 0; n < kColumns; ++n) {
      const BFloat16* column = b + (8 * n + line) * b_stride + k;
      Mma(c[n], rows, {PairAt(column), PairAt(column + 8)});
    }
  }
}

template <int kColumns>
__device__ __forceinline__ void AddProduct(Fragment (&c)[kColumns], const float* a, int a_stride,
                                           const float* b, int b_stride, int depth) {
  for (int k = 0; k < depth; ++k) {
    const float top = a[FragmentRow(0) * a_stride + k], low = a[FragmentRow(2) * a_stride + k];
#pragma unroll
    for (int n = 0; n < kColumns; ++n) {
      const float even = b[(8 * n + FragmentColumn(0)) * b_stride + k];
      const float odd = b[(8 * n + FragmentColumn(1)) * b_stride + k];
      c[n].sum[0] += top * even;
      c[n].sum[1] += top * odd;
      c[n].sum[2] += low * even;
      c[n].sum[3] += low * odd;
    }
  }
}

// A block of four warps takes 64 queries; each warp has 16 of them against 64 keys at a time.
constexpr int kTile = 64;
constexpr int kTileColumns = kTile / 8;  // fragments of a warp side by side
constexpr int kTileRow = SharedStride(kTile);
constexpr int64_t Tiles(int64_t count) { return (count + kTile - 1) / kTile; }

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
    StoreEight(LoadEight(source, count), to + row * kTileRow + piece, kEight);
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
    to[column * kTileRow + row] = there ? from[i] : FromFloat<T>(0.0f);
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
  alignas(16) T query[kTile * kTileRow];
  alignas(16) T key[kTile * kTileRow];
};

// Adds the products of the warp's 16 rows of `tiles.query` with those of `tiles.key`, once all
// threads have loaded them; afterwards they may load others.
template <typename T>
__device__ void AddFeatures(const FeatureTiles<T>& tiles, Fragment (&sums)[kTileColumns]) {
  SyncThreads();
  AddProduct(sums, tiles.query + WarpIndex() * 16 * kTileRow, kTileRow, tiles.key, kTileRow, kTile);
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
    LoadPositions(terms, b, h, first_key, f, kTileRow, 1, tiles.key);
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
      to[transposed ? column * kTileRow + row : row * kTileRow + column] =
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

// Diagonals of a tile: differences of key and query from -63 to 63.
constexpr int kDiagonals = 2 * kTile;

// The scores' probabilities and gradients of a warp's 16 queries against 64 keys. All threads of
// the block, as Scores.
template <typename T>
__device__ void ScoreGradients(const Backward<T>& call, int64_t b, int64_t h, int64_t first_query,
                               int64_t first_key, FeatureTiles<T>& tiles,
                               Fragment (&probabilities)[kTileColumns],
                               Fragment (&d_scores)[kTileColumns]) {
  const Terms<T>& terms = call.terms;
  Scores(terms, b, h, first_query, first_key, tiles, probabilities);
  for (Fragment& fragment : d_scores) fragment = {};
  for (int64_t f = 0; f < terms.head_size; f += kTile) {
    LoadRows(call.dy, b, terms.queries, terms.heads, terms.head_size, h, first_query, f,
             tiles.query);
    LoadRows(terms.value, b, terms.keys, terms.heads, terms.head_size, h, first_key, f, tiles.key);
    AddFeatures(tiles, d_scores);
  }
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int64_t i = first_query + WarpIndex() * 16 + FragmentRow(2 * half);
    const int64_t row = call.RowOf(b, h, i);
    const float offset = i < terms.queries ? call.log_sum_exp[row] : -INFINITY;
    const float mean = i < terms.queries ? call.means[row] : 0.0f;
#pragma unroll
    for (int n = 0; n < kTileColumns; ++n) {
#pragma unroll
      for (int k = 2 * half; k < 2 * half + 2; ++k) {
        // A row with nothing allowed has no probabilities.
        float& p = probabilities[n].sum[k];
        p = offset == -INFINITY ? 0.0f : expf(p - offset);
        d_scores[n].sum[k] = p * (d_scores[n].sum[k] - mean);
      }
    }
  }
}

// Stores the warp's 16 rows of 64 sums to rows [first, first + 64) of the head's columns [column,
// column + 64) of an activation [B, rows, heads * width].
template <typename T>
__device__ void StoreRows(const Fragment (&sums)[kTileColumns], int64_t b, int64_t rows,
                          int64_t heads, int64_t width, int64_t h, int64_t first, int64_t column,
                          bool accumulate, T* to) {
#pragma unroll
  for (int n = 0; n < kTileColumns; ++n) {
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      const int64_t row = first + WarpIndex() * 16 + FragmentRow(k);
      const int64_t at = column + n * 8 + FragmentColumn(k);
      if (row < rows && at < width) {
        StoreResult(sums[n].sum[k], to + ((b * rows + row) * heads + h) * width + at, accumulate);
      }
    }
  }
}

// D_i = dy_i . y_i: a warp takes a row.
template <typename T>
__global__ void MeansKernel(Backward<T> call) {
  const Terms<T>& terms = call.terms;
  const int64_t rows = terms.ExampleCount() * terms.heads * terms.queries;
  const int64_t step = BlockCount() * WarpCount();
  for (int64_t row = BlockIndex() * WarpCount() + WarpIndex(); row < rows; row += step) {
    const int64_t i = row % terms.queries, h = row / terms.queries % terms.heads;
    const int64_t b = terms.Example(row / terms.queries / terms.heads);
    const int64_t at = ((b * terms.queries + i) * terms.heads + h) * terms.head_size;
    float sum = 0.0f;
    for (int64_t d = LaneIndex(); d < terms.head_size; d += kWarp) {
      sum += ToFloat(call.dy[at + d]) * ToFloat(call.y[at + d]);
    }
    sum = WarpSum(sum);
    if (LaneIndex() == 0) call.means[call.RowOf(b, h, i)] = sum;
  }
}

// Two tiles for scores and two for the other operands of products with them.
template <typename T>
struct ProductStorage {
  FeatureTiles<T> features;
  alignas(16) T probabilities[kTile * kTileRow];
  alignas(16) T d_scores[kTile * kTileRow];
  alignas(16) T first[kTile * kTileRow];
  alignas(16) T second[kTile * kTileRow];
};

// dQ = dS K, and dU = dS p^T: columns of the one and then of the other.
template <typename T>
__global__ void __launch_bounds__(kTileThreads) QueryGradKernel(Backward<T> call, bool of_u) {
  auto& shared = Shared<ProductStorage<T>>();
  const Terms<T>& terms = call.terms;
  const int64_t width = of_u ? terms.features : terms.head_size, columns = Tiles(width);
  ForTiles(terms, Tiles(terms.queries) * columns, [&](int64_t b, int64_t h, int64_t tile) {
    const int64_t column = tile % columns * kTile, first_query = tile / columns * kTile;
    Fragment probabilities[kTileColumns], d_scores[kTileColumns], sums[kTileColumns] = {};
    const int64_t end = KeyEnd(terms, first_query);
    for (int64_t first_key = 0; first_key < end; first_key += kTile) {
      ScoreGradients(call, b, h, first_query, first_key, shared.features, probabilities, d_scores);
      StoreTile(d_scores, false, shared.d_scores);
      // The other operand by columns: [column][key].
      if (of_u) {
        LoadPositions(terms, b, h, first_key, column, 1, kTileRow, shared.first);
      } else {
        LoadColumns(terms.key + column, b, terms.keys, terms.heads, terms.head_size, h, first_key,
                    kTile, terms.head_size - column, shared.first);
      }
      SyncThreads();
      AddProduct(sums, shared.d_scores + WarpIndex() * 16 * kTileRow, kTileRow, shared.first,
                 kTileRow, kTile);
      SyncThreads();
    }
    StoreRows(sums, b, terms.queries, terms.heads, width, h, first_query, column,
              call.accumulate[of_u ? kU : kQuery], of_u ? call.du : call.dquery);
  });
}

// dV = P^T dY and dK = dS^T Q.
template <typename T>
__global__ void __launch_bounds__(kTileThreads) KeyGradKernel(Backward<T> call) {
  auto& shared = Shared<ProductStorage<T>>();
  const Terms<T>& terms = call.terms;
  const int64_t columns = Tiles(terms.head_size);
  const int own = WarpIndex() * 16 * kTileRow;
  ForTiles(terms, Tiles(terms.keys) * columns, [&](int64_t b, int64_t h, int64_t tile) {
    const int64_t column = tile % columns * kTile, first_key = tile / columns * kTile;
    Fragment probabilities[kTileColumns], d_scores[kTileColumns];
    Fragment dvalue[kTileColumns] = {}, dkey[kTileColumns] = {};
    for (int64_t first_query = 0; first_query < terms.queries; first_query += kTile) {
      if (first_key >= KeyEnd(terms, first_query)) continue;
      ScoreGradients(call, b, h, first_query, first_key, shared.features, probabilities, d_scores);
      StoreTile(probabilities, true, shared.probabilities);
      StoreTile(d_scores, true, shared.d_scores);
      const auto load = [&](const T* from, T* to) {
        LoadColumns(from + column, b, terms.queries, terms.heads, terms.head_size, h, first_query,
                    kTile, terms.head_size - column, to);
      };
      load(call.dy, shared.first);
      if (call.dkey != nullptr) load(terms.query, shared.second);
      SyncThreads();
      AddProduct(dvalue, shared.probabilities + own, kTileRow, shared.first, kTileRow, kTile);
      if (call.dkey != nullptr) {
        AddProduct(dkey, shared.d_scores + own, kTileRow, shared.second, kTileRow, kTile);
      }
      SyncThreads();
    }
    const auto store = [&](const Fragment(&sums)[kTileColumns], Input g, T* to) {
      if (to != nullptr) {
        StoreRows(sums, b, terms.keys, terms.heads, terms.head_size, h, first_key, column,
                  call.accumulate[g], to);
      }
    };
    store(dvalue, kValue, call.dvalue);
    store(dkey, kKey, call.dkey);
  });
}

template <typename T>
struct ScoreStorage {
  FeatureTiles<T> features;
  float d_scores[kTile * kTileRow];
};

// da_i[x] = sum of dS_ij b_i[y] and db_i[y] = sum of dS_ij a_i[x] over the keys whose position is
// y Na + x. A thread owns a query, so its sums have one order.
template <typename T>
__global__ void __launch_bounds__(kTileThreads) OuterGradKernel(Backward<T> call) {
  auto& shared = Shared<ScoreStorage<T>>();
  const Terms<T>& terms = call.terms;
  ForTiles(terms, Tiles(terms.queries), [&](int64_t b, int64_t h, int64_t tile) {
    const int64_t first_query = tile * kTile;
    Fragment probabilities[kTileColumns], d_scores[kTileColumns];
    // The first half of the threads takes da of a query each, the second half db.
    const int64_t i = first_query + ThreadIndex() % kTile;
    const bool of_a = ThreadIndex() < kTile;
    const int64_t row = (b * terms.queries + i) * terms.heads + h;
    T* to = of_a ? call.da : call.db;
    const int64_t size = of_a ? terms.a_size : terms.b_size;
    const bool accumulate = call.accumulate[of_a ? kA : kB];
    // Columns of the result in pieces that fit registers.
    for (int64_t first = 0; first < (terms.a_size > terms.b_size ? terms.a_size : terms.b_size);
         first += kEight) {
      Eight sums = {};
      const int64_t end = KeyEnd(terms, first_query);
      for (int64_t first_key = 0; first_key < end; first_key += kTile) {
        ScoreGradients(call, b, h, first_query, first_key, shared.features, probabilities,
                       d_scores);
        StoreTile(d_scores, false, shared.d_scores);
        SyncThreads();
        for (int j = 0; j < kTile; ++j) {
          if (to == nullptr || i >= terms.queries || first_key + j >= terms.keys) break;
          const int64_t n = terms.KeyPosition(b, first_key + j);
          const int64_t x = n % terms.a_size, y = n / terms.a_size, own = (of_a ? x : y) - first;
          if (own < 0 || own >= kEight) continue;
          const float other = of_a ? ToFloat(terms.b[row * terms.b_size + y])
                                   : ToFloat(terms.a[row * terms.a_size + x]);
#pragma unroll
          for (int k = 0; k < kEight; ++k) {
            if (k == own) sums[k] += shared.d_scores[ThreadIndex() % kTile * kTileRow + j] * other;
          }
        }
        SyncThreads();
      }
      if (to == nullptr || i >= terms.queries || first >= size) continue;
      const int count = static_cast<int>(size - first < kEight ? size - first : kEight);
      StoreResult(sums, to + row * size + first, count, accumulate);
    }
  });
}

// The sum of a tile's dS over the batch, from which the bias's diagonals and, where positions do
// not scatter it, the table's entries follow.
template <typename T>
__global__ void __launch_bounds__(kTileThreads) BiasGradKernel(Backward<T> call) {
  auto& shared = Shared<ScoreStorage<T>>();
  const Terms<T>& terms = call.terms;
  const int64_t h = BlockIndex() % terms.heads, tile = BlockIndex() / terms.heads;
  const int64_t first_key = tile % Tiles(terms.keys) * kTile;
  const int64_t first_query = tile / Tiles(terms.keys) * kTile;
  Fragment probabilities[kTileColumns], d_scores[kTileColumns], sums[kTileColumns] = {};
  for (int64_t n = 0; n < terms.ExampleCount(); ++n) {
    ScoreGradients(call, terms.Example(n), h, first_query, first_key, shared.features,
                   probabilities, d_scores);
    for (int n = 0; n < kTileColumns; ++n) {
      for (int k = 0; k < 4; ++k) sums[n].sum[k] += d_scores[n].sum[k];
    }
  }
  StoreTile(sums, false, shared.d_scores);
  SyncThreads();
  // Diagonal d holds the keys j = i + d - 64 of the tile.
  const int d = ThreadIndex();
  float sum = 0.0f;
  for (int i = 0; i < kTile; ++i) {
    const int j = i + d - kTile;
    if (j >= 0 && j < kTile) sum += shared.d_scores[i * kTileRow + j];
  }
  call.bias_parts[BlockIndex() * kDiagonals + d] = sum;
}

// Adds up the diagonals that the tiles have of each difference, in the tiles' order.
template <typename T>
__global__ void FinishBiasKernel(Backward<T> call) {
  const Terms<T>& terms = call.terms;
  const int64_t differences = terms.queries + terms.keys - 1;
  const int64_t item = BlockIndex() * ThreadCount() + ThreadIndex();
  if (item >= terms.heads * differences) return;
  const int64_t h = item / differences, difference = item % differences - (terms.queries - 1);
  float sum = 0.0f;
  for (int64_t query = 0; query < terms.queries; query += kTile) {
    for (int64_t key = 0; key < terms.keys; key += kTile) {
      const int64_t d = difference - (key - query) + kTile;
      const int64_t tile = query / kTile * Tiles(terms.keys) + key / kTile;
      if (d > 0 && d < kDiagonals)
        sum += call.bias_parts[(tile * terms.heads + h) * kDiagonals + d];
    }
  }
  StoreResult(sum, call.dbias + item, call.accumulate[kBias]);
}

// Adds a query's gradients to the entries of a row of the table. A thread owns the columns that
// leave the same rest of 64, so no two meet at an entry, whichever positions the keys have.
template <typename T>
__device__ void AddToOwnColumns(const Terms<T>& terms, int64_t b, int64_t first_key,
                                const float* d_scores, float* row) {
  const int own = ThreadIndex();
  if (own >= kTile) return;
  if (terms.key_positions == nullptr) {
    if (first_key + own < terms.keys) row[first_key + own] += d_scores[own];
    return;
  }
  for (int j = 0; j < kTile && first_key + j < terms.keys; ++j) {
    const int64_t n = terms.KeyPosition(b, first_key + j);
    if (n % kTile == own) row[n] += d_scores[j];
  }
}

// dtable: a block takes a head of the table, or with `by_tile` 64 x 64 entries of it, and adds what
// falls into them, query after query.
template <typename T>
__global__ void __launch_bounds__(kTileThreads) TableGradKernel(Backward<T> call, bool by_tile) {
  auto& shared = Shared<ScoreStorage<T>>();
  const Terms<T>& terms = call.terms;
  const int64_t key_tiles = Tiles(terms.keys);
  const int64_t tiles = by_tile ? Tiles(terms.queries) * key_tiles : 1;
  const int64_t tile = BlockIndex() % tiles, table_head = BlockIndex() / tiles;
  const int64_t heads = terms.table_heads == 1 ? terms.heads : 1;
  float* table = call.dtable + table_head * terms.table_queries * terms.table_keys;
  Fragment probabilities[kTileColumns], d_scores[kTileColumns];
  const auto add = [&](int64_t b, int64_t h, int64_t first_query, int64_t first_key) {
    ScoreGradients(call, b, h, first_query, first_key, shared.features, probabilities, d_scores);
    StoreTile(d_scores, false, shared.d_scores);
    SyncThreads();
    for (int i = 0; i < kTile && first_query + i < terms.queries; ++i) {
      const int64_t m = terms.table_queries == 1 ? 0 : terms.QueryPosition(b, first_query + i);
      AddToOwnColumns(terms, b, first_key, shared.d_scores + i * kTileRow,
                      table + m * terms.table_keys);
    }
    SyncThreads();
  };
  for (int64_t head = 0; head < heads; ++head) {
    const int64_t h = terms.table_heads == 1 ? head : table_head;
    for (int64_t n = 0; n < terms.ExampleCount(); ++n) {
      const int64_t b = terms.Example(n);
      if (by_tile) {
        add(b, h, tile / key_tiles * kTile, tile % key_tiles * kTile);
        continue;
      }
      for (int64_t query = 0; query < terms.queries; query += kTile) {
        for (int64_t key = 0; key < KeyEnd(terms, query); key += kTile) add(b, h, query, key);
      }
    }
  }
}

// dpositions[f][n] = sum of u_i[f] dS_ij over examples, queries and the keys j at position n. A
// block takes 64 features, and with `by_tile` 64 keys.
template <typename T>
__global__ void __launch_bounds__(kTileThreads)
    PositionsGradKernel(Backward<T> call, bool by_tile) {
  auto& shared = Shared<ProductStorage<T>>();
  const Terms<T>& terms = call.terms;
  const int64_t tiles = by_tile ? Tiles(terms.keys) : 1, chunks = Tiles(terms.features);
  const int64_t tile = BlockIndex() % tiles, chunk = BlockIndex() / tiles % chunks;
  const int64_t positions_head = BlockIndex() / tiles / chunks, feature = chunk * kTile;
  const int64_t heads = terms.positions_per_head ? 1 : terms.heads;
  float* positions = call.dpositions + positions_head * terms.features * terms.position_extent;
  Fragment probabilities[kTileColumns], d_scores[kTileColumns];
  // Rows are keys, columns features.
  const auto add = [&](int64_t b, int64_t h, int64_t first_key) {
    Fragment sums[kTileColumns] = {};
    for (int64_t query = 0; query < terms.queries; query += kTile) {
      ScoreGradients(call, b, h, query, first_key, shared.features, probabilities, d_scores);
      StoreTile(d_scores, true, shared.d_scores);
      LoadColumns(terms.u + feature, b, terms.queries, terms.heads, terms.features, h, query, kTile,
                  terms.features - feature, shared.first);
      SyncThreads();
      AddProduct(sums, shared.d_scores + WarpIndex() * 16 * kTileRow, kTileRow, shared.first,
                 kTileRow, kTile);
      SyncThreads();
    }
    // Keys of other segments may share a position: their warps and rows take turns.
    for (int row = 0; row < kTile; ++row) {
      const int64_t j = first_key + row;
#pragma unroll
      for (int n = 0; n < kTileColumns; ++n) {
#pragma unroll
        for (int k = 0; k < 4; ++k) {
          const int64_t f = feature + n * 8 + FragmentColumn(k);
          if (WarpIndex() * 16 + FragmentRow(k) == row && j < terms.keys && f < terms.features) {
            positions[f * terms.position_extent + terms.KeyPosition(b, j)] += sums[n].sum[k];
          }
        }
      }
      SyncThreads();
    }
  };
  for (int64_t head = 0; head < heads; ++head) {
    const int64_t h = terms.positions_per_head ? positions_head : head;
    for (int64_t n = 0; n < terms.ExampleCount(); ++n) {
      const int64_t b = terms.Example(n);
      if (by_tile) {
        add(b, h, tile * kTile);
        continue;
      }
      for (int64_t key = 0; key < terms.keys; key += kTile) add(b, h, key);
    }
  }
}

struct SetZero {
  float* to;
  __device__ void operator()(int64_t i, int count) const { StoreEight({}, to + i, count); }
};

template <typename T>
void Run(const KernelArguments& arguments, const Backward<T>& call) {
  const Terms<T>& z = call.terms;
  const auto of_examples = [&](int64_t tiles) {
    return TileGrid(z, tiles, sizeof(ProductStorage<T>));
  };
  const Grid products{1, kTileThreads, sizeof(ProductStorage<T>)};
  const Grid scores{1, kTileThreads, sizeof(ScoreStorage<T>)};
  const auto blocks = [](Grid grid, int64_t count) {
    grid.blocks = count;
    return grid;
  };
  Launch(arguments, GridFor(z.batch * z.heads * z.queries * kWarp), MeansKernel<T>, call);
  if (call.dquery != nullptr) {
    Launch(arguments, of_examples(Tiles(z.queries) * Tiles(z.head_size)), QueryGradKernel<T>, call,
           false);
  }
  if (call.du != nullptr) {
    Launch(arguments, of_examples(Tiles(z.queries) * Tiles(z.features)), QueryGradKernel<T>, call,
           true);
  }
  if (call.dkey != nullptr || call.dvalue != nullptr) {
    Launch(arguments, of_examples(Tiles(z.keys) * Tiles(z.head_size)), KeyGradKernel<T>, call);
  }
  if (call.da != nullptr || call.db != nullptr) {
    Launch(arguments, TileGrid(z, Tiles(z.queries), sizeof(ScoreStorage<T>)), OuterGradKernel<T>,
           call);
  }
  const auto start = [&](Input g, float* to, int64_t count) {
    if (!call.accumulate[g]) Elementwise(arguments, count, SetZero{to});
  };
  const bool by_row = z.query_positions == nullptr && z.key_positions == nullptr;
  if (call.dtable != nullptr) {
    start(kTable, call.dtable, z.table_heads * z.table_queries * z.table_keys);
    // One row for all queries, or positions that repeat: tiles would meet at the same entries.
    const bool by_tile = by_row && z.table_queries > 1;
    const int64_t tiles = by_tile ? Tiles(z.queries) * Tiles(z.keys) : 1;
    Launch(arguments, blocks(scores, z.table_heads * tiles), TableGradKernel<T>, call, by_tile);
  }
  if (call.dpositions != nullptr) {
    const int64_t heads = z.positions_per_head ? z.heads : 1;
    start(kPositions, call.dpositions, heads * z.features * z.position_extent);
    Launch(arguments, blocks(products, heads * Tiles(z.features) * (by_row ? Tiles(z.keys) : 1)),
           PositionsGradKernel<T>, call, by_row);
  }
  if (call.dbias != nullptr) {
    Launch(arguments, blocks(scores, z.heads * Tiles(z.queries) * Tiles(z.keys)), BiasGradKernel<T>,
           call);
    const int64_t differences = z.heads * (z.queries + z.keys - 1);
    Launch(arguments, {(differences + kThreads - 1) / kThreads, kThreads}, FinishBiasKernel<T>,
           call);
  }
}

}  // namespace
}  // namespace attention

std::optional<BoundKernel> cuda_attention_grad(const OpCall& call) {
  using namespace attention;
  const Sizes z = SizesOf(call.attributes, call.inputs);
  const DType dtype = call.inputs[kValue].dtype;
  if (!IsActivation(call.inputs[kValue])) return std::nullopt;
  WorkspaceLayout layout;
  const std::optional<SharedAttention> shared = SharedAttention::For(z, call.inputs, layout);
  std::optional<SharedGradients> gradients;
  if (shared) gradients.emplace(call, z, *shared, layout);
  const size_t means = layout.Place(z.batch * z.heads * z.queries * sizeof(float));
  const size_t parts =
      call.outputs[kBias].present()
          ? layout.Place(Tiles(z.queries) * Tiles(z.keys) * z.heads * kDiagonals * sizeof(float))
          : 0;
  BoundKernel kernel;
  kernel.accumulates = true;
  kernel.workspace_bytes = layout.bytes();
  kernel.run = [=, accumulate = call.accumulate](const KernelArguments& arguments) {
    WithActivation(dtype, [&](auto type) {
      using T = decltype(type);
      const auto out = [&]<typename Element>(int g, Element) {
        return syntra::Output<Element>(arguments, g);
      };
      Backward<T> backward{Terms<T>::Of(z, arguments),
                           syntra::Input<T>(arguments, kGivenY),
                           syntra::Input<T>(arguments, kGivenDY),
                           syntra::Input<float>(arguments, kGivenLogSumExp),
                           reinterpret_cast<float*>(arguments.workspace + means),
                           out(kQuery, T{}),
                           out(kKey, T{}),
                           out(kValue, T{}),
                           out(kU, T{}),
                           out(kA, T{}),
                           out(kB, T{}),
                           out(kPositions, float{}),
                           out(kTable, float{}),
                           out(kBias, float{}),
                           reinterpret_cast<float*>(arguments.workspace + parts),
                           {}};
      for (size_t g = 0; g < accumulate.size(); ++g) backward.accumulate[g] = accumulate[g];
      if (shared) {
        const SharedScores<T> scores = shared->Run(arguments, backward.terms, {});
        gradients->Run(arguments, scores, backward);
        if (!shared->may_leave()) return;
        backward.terms.examples = scores.left;
        backward.accumulate[kTable] = backward.accumulate[kBias] = true;
      }
      Run(arguments, backward);
    });
  };
  return kernel;
}

}  // namespace syntra
