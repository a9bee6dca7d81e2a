// SPDX-License-Identifier: Apache-2.0
// The results of attention_grad that are sums of dS itself (grad.h): dtable, and the sums
// over parts of the batch.
#include "base/divide.h"
#include "kernels/cuda/attention/grad.h"
#include "kernels/cuda/attention/table_grad_hopper.h"
#include "kernels/cuda/reduce.h"
#include "kernels/cuda/rows.h"

namespace syntra::attention {
namespace {

// Computes P and dS of tiles when both sides change from tile to tile. Queries are the rows.
template <typename T>
class PairGradients {
 public:
  __device__ PairGradients(const Recomputation<T>& work, T* memory)
      : work_(work), terms_(work.call.terms), stages_(memory) {}

  // Starts to copy both sides.
  __device__ void Copy(int64_t b, int64_t h, const Place& place, int stage) {
    const Side<T> queries = Queries(terms_, work_.call.dy, b, h);
    keys_ = Keys(terms_, b, h);
    queries.template Copy<kOwnRows>(place.own, Stage(stage));
    keys_.template Copy<kPassing<T>>(place.passing, PassingOf(Stage(stage)));
  }
  __device__ void Start(int64_t b, int64_t h, const Place& place) {
    StartScores<false>(terms_, b, h, place, scores);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int row = place.own + WarpIndex() * 16 + FragmentRow(2 * half);
      statistics_[half] = work_.StatisticsOf(b, h)[row];
    }
  }
  __device__ void Finish(int64_t b, int64_t h, const Place& place, int stage) {
    FinishScores<false>(
        terms_, b, h, place, keys_, Stage(stage), PassingOf(Stage(stage)),
        [&](int, int k) { return statistics_[k / 2]; }, scores, d_scores);
  }

  RowScores<T> scores, d_scores;

 private:
  __device__ T* Stage(int stage) const {
    return stages_ + stage * keys_.TileCount() * (kOwnTile<T, 1> + kPassingTile<T>);
  }
  __device__ T* PassingOf(T* stage) const { return stage + keys_.TileCount() * kOwnTile<T, 1>; }

  const Recomputation<T>& work_;
  const Terms<T>& terms_;
  T* stages_;
  Side<T> keys_;
  RowStatistics statistics_[2];
};

// Sums dS of a tile of scores over a part of the batch.
template <typename T>
class TableTile {
 public:
  __device__ TableTile(const Recomputation<T>& work, T* memory, int64_t h, const Place& place,
                       int64_t first, int64_t end)
      : work_(work),
        h_(h),
        next_example_(first - 1),
        end_(end),
        next_(place),
        pair_(work, memory) {}

  __device__ bool Find() {
    const Terms<T>& terms = work_.call.terms;
    for (++next_example_; next_example_ < end_; ++next_example_) {
      next_b_ = terms.Example(next_example_);
      if (FindMask(terms, next_b_, h_, next_.own, kOwnRows, next_.passing, kPassing<T>,
                   next_.mask)) {
        return true;
      }
    }
    return false;
  }
  __device__ void Copy(int stage) { pair_.Copy(next_b_, h_, next_, stage); }
  __device__ void Prepare() {
    b_ = next_b_;
    place_ = next_;
    pair_.Start(b_, h_, place_);
  }
  __device__ void Use(int stage) {
    pair_.Finish(b_, h_, place_, stage);
#pragma unroll
    for (int n = 0; n < kPassingFragments<T>; ++n) {
#pragma unroll
      for (int k = 0; k < 4; ++k) sums_[n].sum[k] += pair_.d_scores[0][n].sum[k];
    }
  }
  __device__ void Store(SumsBuffer& staged, float* to, int stride) {
    StoreTile(staged, sums_,
              Target<float>{to, static_cast<int>(work_.call.terms.queries), stride, stride, false},
              next_.own + WarpIndex() * 16, next_.passing);
  }

 private:
  const Recomputation<T>& work_;
  int64_t h_, next_example_, end_, b_, next_b_;
  Place next_, place_;
  PairGradients<T> pair_;
  Fragment sums_[kPassingFragments<T>] = {};
};

template <typename T>
__global__ void __launch_bounds__(kTileThreads, 2)
    TableSumsKernel(Recomputation<T> work, int stages) {
  const Terms<T>& terms = work.call.terms;
  const int key_tiles = static_cast<int>(Chunks(terms.keys)) * (kColumns / kPassing<T>);
  const int tiles = static_cast<int>(Chunks(terms.queries)) * key_tiles;
  const auto heads = static_cast<int>(terms.heads), parts = static_cast<int>(work.table_parts);
  const auto examples = static_cast<int>(terms.ExampleCount());
  T* memory = reinterpret_cast<T*>(SharedBytes());
  ForItems(terms, int64_t{tiles} * heads * parts, [&](int item) {
    const int tile = item % tiles, h = item / tiles % heads, part = item / tiles / heads;
    const Place place{tile / key_tiles * kOwnRows, tile % key_tiles * kPassing<T>, {}};
    TableTile<T> sums(work, memory, h, place, FirstOfPart(examples, part, parts),
                      FirstOfPart(examples, part + 1, parts));
    if (place.passing < terms.keys) PassStages(stages, sums);
    sums.Store(reinterpret_cast<RowsOfSums*>(memory)->of_warp[WarpIndex()],
               work.TableSums(part, h, 0), static_cast<int>(Chunks(terms.keys)) * kColumns);
  });
}

// dtable if the table has a row per query: sums over parts, and over the heads that share the
// table. Without examples nothing was summed.
template <typename T>
struct TableRows {
  Recomputation<T> work;

  __device__ void operator()(int64_t row, int64_t column, int count) const {
    const Terms<T>& terms = work.call.terms;
    if (terms.ExampleCount() == 0) return;
    const int64_t i = row % terms.table_queries, first = row / terms.table_queries;
    const int64_t end = terms.table_heads == 1 ? terms.heads : first + 1;
    Eight sums = {};
    for (int64_t h = first; h < end && i < terms.queries && column < terms.keys; ++h) {
      for (int64_t part = 0; part < work.table_parts; ++part) {
        sums += LoadEight(work.TableSums(part, h, i) + column, kEight);
      }
    }
    StoreResult(sums, work.call.dtable + row * terms.table_keys + column, count,
                work.call.accumulate[kTable]);
  }
};

// result[group, line] (+)= sum over the items of Sums::Term(group, line, item). The lanes of a warp
// have neighbouring lines, each of the block's eight warps sums every eighth item. Without examples
// nothing was summed.
template <typename Sums>
__global__ void SumLinesKernel(Sums sums) {
  if (sums.work.call.terms.ExampleCount() == 0) return;
  const int64_t tiles = DivideUp(sums.lines, kWarp), group = BlockIndex() / tiles;
  const int64_t line = BlockIndex() % tiles * kWarp + LaneIndex();
  float sum = 0.0f;
  if (line < sums.lines) {
    constexpr int kAtOnce = 12;
    AddTerms<kAtOnce>(
        WarpIndex(), sums.items, WarpCount(),
        [&](int64_t item) { return sums.Term(group, line, item); }, sum);
  }
  const float total = SumOverWarps(sum, Shared<ColumnStorage>());
  if (WarpIndex() != 0 || line >= sums.lines) return;
  StoreResult(total, sums.result + group * sums.lines + line, sums.accumulate);
}

template <typename Sums>
void SumLines(const KernelArguments& arguments, int64_t groups, const Sums& sums) {
  Launch(arguments, {groups * DivideUp(sums.lines, kWarp), kThreads, sizeof(ColumnStorage)},
         SumLinesKernel<Sums>, sums);
}

// dbias: a line is a difference of key and query.
template <typename T>
struct BiasLines {
  Recomputation<T> work;
  float* result;
  bool accumulate;
  int64_t lines, items;

  __device__ float Term(int64_t h, int64_t line, int64_t item) const {
    const int64_t difference = line - (work.call.terms.queries - 1);
    const int64_t tiles = work.LineTiles(), warps = work.LineWarps();
    const int64_t warp = item % warps, tile = item / warps % tiles;
    const int64_t x = work.MainDiagonal(tile * kOwnRows + warp * 16) - difference;
    if (x < 0 || x >= work.LineLength()) return 0.0f;
    return work.BiasLine(item / warps / tiles, h, tile, warp)[x];
  }
};

// dtable if all queries share a row: a line is a key.
template <typename T>
struct TableColumns {
  Recomputation<T> work;
  float* result;
  bool accumulate;
  int64_t lines, items;

  __device__ float Term(int64_t table_head, int64_t line, int64_t item) const {
    const Terms<T>& terms = work.call.terms;
    if (line >= terms.keys) return 0.0f;
    const int64_t i = item % terms.queries, part = item / terms.queries % work.table_parts;
    const int64_t h = terms.table_heads == 1 ? item / terms.queries / work.table_parts : table_head;
    return work.TableSums(part, h, i)[line];
  }
};

// dpositions: the lanes of a warp have neighbouring features of a position, each of the block's
// eight warps sums every eighth part, or head of a part. If examples have positions, each is a
// part, in which a warp looks for the keys at its position.
template <typename T>
__global__ void DensePartsKernel(Recomputation<T> work) {
  const Terms<T>& terms = work.call.terms;
  const int64_t tiles = DivideUp(terms.features, kWarp), row = BlockIndex() / tiles;
  const int64_t f = BlockIndex() % tiles * kWarp + LaneIndex();
  const int64_t n = row % terms.position_extent, table_head = row / terms.position_extent;
  const int64_t first = terms.positions_per_head ? table_head : 0;
  const int64_t heads = terms.positions_per_head ? 1 : terms.heads;
  const int64_t width = Chunks(terms.features) * kColumns;
  float sum = 0.0f;
  for (int64_t item = WarpIndex(); item < work.parts * heads; item += WarpCount()) {
    const int64_t part = item / heads;
    const float* sums = work.DenseParts(part, first + item % heads) + f;
    if (terms.key_positions == nullptr) {
      if (n < terms.keys) sum += sums[n * width];
    } else {
      for (int64_t j = 0; j < terms.keys; ++j) {
        if (terms.KeyPosition(part, j) == n) sum += sums[j * width];
      }
    }
  }
  const float total = SumOverWarps(sum, Shared<ColumnStorage>());
  if (WarpIndex() != 0 || f >= terms.features) return;
  StoreResult(total,
              work.call.dpositions + (table_head * terms.features + f) * terms.position_extent + n,
              work.call.accumulate[kPositions]);
}

// dS of 64 queries and the passing keys, for all threads of the block to read. The memory of the
// tiles follows it.
struct SharedScoreGradients {
  float row[kOwnRows][kSumsStride];
};

template <typename T>
__device__ void ShareScoreGradients(PairGradients<T>& pair, const Terms<T>& terms, int64_t b,
                                    int64_t h, Place place, SharedScoreGradients& shared) {
  FindMask(terms, b, h, place.own, kOwnRows, place.passing, kPassing<T>, place.mask);
  pair.Copy(b, h, place, 0);
  CommitCopies();
  pair.Start(b, h, place);
  WaitForCopies<0>();
  SyncThreads();
  pair.Finish(b, h, place, 0);
#pragma unroll
  for (int n = 0; n < kPassingFragments<T>; ++n) {
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      shared.row[WarpIndex() * 16 + FragmentRow(k)][8 * n + FragmentColumn(k)] =
          pair.d_scores[0][n].sum[k];
    }
  }
  SyncThreads();
}

// A key after which the 64 queries from `first_query` on see none.
template <typename T>
__device__ int64_t KeyEnd(const Terms<T>& terms, int64_t first_query) {
  const int64_t end = first_query + kOwnRows;
  const bool up_to_diagonal = terms.pattern.causal && terms.prefix_ends == nullptr;
  return up_to_diagonal && end < terms.keys ? end : terms.keys;
}

// dtable if positions repeat, so that several tiles add to the same entries. A block computes a
// head of the table and adds one query after the other. A thread owns the columns that equal its
// index modulo the number of threads, so no two threads add to the same entry, whatever the
// positions are.
template <typename T>
__global__ void __launch_bounds__(kTileThreads) ScatterTableKernel(Recomputation<T> work) {
  auto& shared = Shared<SharedScoreGradients>();
  const Terms<T>& terms = work.call.terms;
  const int64_t heads = terms.table_heads == 1 ? terms.heads : 1;
  float* table = work.call.dtable + BlockIndex() * terms.table_queries * terms.table_keys;
  PairGradients<T> pair(work, reinterpret_cast<T*>(&shared + 1));
  const auto add = [&](int64_t b, int64_t h, int64_t first_query, int64_t first_key) {
    ShareScoreGradients(pair, terms, b, h,
                        {static_cast<int>(first_query), static_cast<int>(first_key)}, shared);
    static_assert(kPassing<T> <= 64);
    uint64_t owned = 0;  // the thread's keys
    for (int j = 0; j < kPassing<T> && first_key + j < terms.keys; ++j) {
      const bool is_own = terms.KeyPosition(b, first_key + j) % kTileThreads == ThreadIndex();
      owned |= static_cast<uint64_t>(is_own) << j;
    }
    for (int i = 0; i < kOwnRows && first_query + i < terms.queries && owned != 0; ++i) {
      const int64_t m = terms.table_queries == 1 ? 0 : terms.QueryPosition(b, first_query + i);
      for (uint64_t left = owned; left != 0; left &= left - 1) {
        const int j = LowestBit(left);
        table[m * terms.table_keys + terms.KeyPosition(b, first_key + j)] += shared.row[i][j];
      }
    }
    SyncThreads();
  };
  for (int64_t head = 0; head < heads; ++head) {
    for (int64_t n = 0; n < terms.ExampleCount(); ++n) {
      for (int64_t query = 0; query < terms.queries; query += kOwnRows) {
        for (int64_t key = 0; key < KeyEnd(terms, query); key += kPassing<T>) {
          add(terms.Example(n), terms.table_heads == 1 ? head : BlockIndex(), query, key);
        }
      }
    }
  }
}

struct SetZero {
  float* to;
  __device__ void operator()(int64_t i, int count) const { StoreEight({}, to + i, count); }
};

// Computes the parts of dtable.
template <typename T>
void SumTable(const KernelArguments& arguments, const Recomputation<T>& work,
              const TileMemory& memory) {
  if constexpr (std::is_same_v<T, BFloat16>) {
    if (work.table_on_hopper) return SumTableOnHopper(arguments, work);
  }
  const Terms<T>& z = work.call.terms;
  const int64_t tiles = Chunks(z.queries) * Chunks(z.keys) * (kColumns / kPassing<T>);
  Launch(arguments, ItemGrid(z, tiles * z.heads * work.table_parts, memory.bytes),
         TableSumsKernel<T>, work, memory.stages);
}

template <typename T>
void RunTable(const KernelArguments& arguments, const Recomputation<T>& work,
              const TileMemory& memory) {
  const Terms<T>& z = work.call.terms;
  const bool accumulate = work.call.accumulate[kTable];
  if (!z.ByRow()) {
    if (!accumulate) {
      Elementwise(arguments, z.table_heads * z.table_queries * z.table_keys,
                  SetZero{work.call.dtable});
    }
    return Launch(arguments, {z.table_heads, kTileThreads, memory.bytes}, ScatterTableKernel<T>,
                  work);
  }
  SumTable(arguments, work, memory);
  if (z.table_queries > 1) {
    Rowwise(arguments, z.table_heads * z.table_queries, z.table_keys, TableRows<T>{work});
  } else {
    const int64_t heads = z.table_heads == 1 ? z.heads : 1;
    SumLines(arguments, z.table_heads,
             TableColumns<T>{work, work.call.dtable, accumulate, z.table_keys,
                             z.queries * work.table_parts * heads});
  }
}

}  // namespace

template <typename T>
std::optional<TileMemory> TableTileMemory(const GradientTiles<T>& tile_counts) {
  return TileMemory::For(sizeof(SharedScoreGradients),
                         tile_counts.own_bytes() + tile_counts.passing_bytes());
}

template <typename T>
void SumScoreGradients(const KernelArguments& arguments, const Recomputation<T>& work) {
  const Backward<T>& call = work.call;
  const Terms<T>& z = call.terms;
  if (call.dtable != nullptr) {
    RunTable(arguments, work, *TableTileMemory(GradientTiles<T>(z, z.query != nullptr)));
  }
  if (call.dpositions != nullptr) {
    const int64_t heads = z.positions_per_head ? z.heads : 1;
    const int64_t blocks = heads * z.position_extent * DivideUp(z.features, kWarp);
    Launch(arguments, {blocks, kThreads, sizeof(ColumnStorage)}, DensePartsKernel<T>, work);
  }
  if (call.dbias != nullptr) {
    SumBias(arguments, call, work.bias_sums, [&](float* to, bool accumulate) {
      SumLines(arguments, z.heads,
               BiasLines<T>{work, to, accumulate, z.queries + z.keys - 1,
                            work.parts * work.LineTiles() * work.LineWarps()});
    });
  }
}

#define SYNTRA_FOR_ACTIVATION(T)                                               \
  template std::optional<TileMemory> TableTileMemory(const GradientTiles<T>&); \
  template void SumScoreGradients(const KernelArguments&, const Recomputation<T>&);
SYNTRA_FOR_ACTIVATION(float)
SYNTRA_FOR_ACTIVATION(BFloat16)
#undef SYNTRA_FOR_ACTIVATION

}  // namespace syntra::attention
