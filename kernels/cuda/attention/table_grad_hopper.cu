// SPDX-License-Identifier: Apache-2.0
// The sums of dS over the batch (table_grad.cu) on Hopper GPUs. A block computes a tile
// of 128 queries and 128 keys of a head, for a part of the batch. The sums stay in registers, and
// so do table and bias, which are the same for all examples.
//
// Four warps copy: one thread of them starts the copies of tiles, a warp copies the statistics of
// the queries. Two groups of four warps compute 64 queries each, 64 keys at a time: S and dP of 128
// keys would need more registers than there are.
#include "kernels/cuda/attention/hopper_tiles.h"
#include "kernels/cuda/attention/score_starts.h"
#include "kernels/cuda/attention/table_grad_hopper.h"

namespace syntra::attention {
namespace {

constexpr int kGroups = 2, kConsumers = kGroups * kProductWarps;  // warps
constexpr int kTableThreads = (kConsumers + kProductWarps) * kWarp;
constexpr int kKeyTiles = 2;  // of a group
constexpr int kQueries = kGroups * kColumns, kKeys = kKeyTiles * kColumns;
constexpr int kStages = 3;
// Registers of a thread. Each has 168 at first. The warps that copy give some back, and the warps
// that compute get these.
constexpr int kComputing = 240, kCopying = 24;

struct Tiles {
  alignas(1024) RowTile queries[kGroups], dy[kGroups], keys[kKeyTiles], values[kKeyTiles];
};

constexpr int kNoExample = -1;  // there are no more

struct TableMemory {
  Tiles stages[kStages];
  RowStatistics statistics[kStages][kQueries];  // of the stages' queries
  Place places[kStages];
  int examples[kStages];
  Ring<kStages> ring;
};

static_assert(sizeof(TableMemory) <= HopperSharedBytes());

struct TableCall {
  MappedRows queries, dy, keys, values;
  Recomputation<BFloat16> work;
};

// `sizes` are Dimensions or Terms.
template <typename Sizes>
int64_t TilesOf(const Sizes& sizes) {
  return sizes.heads * DivideUp(sizes.queries, kQueries) * DivideUp(sizes.keys, kKeys);
}

// A block's tile and its part of the batch.
struct TableShare {
  int first_query, first_key, h, part, first, end;

  __device__ explicit TableShare(const Recomputation<BFloat16>& work) {
    const Terms<BFloat16>& terms = work.call.terms;
    const int query_tiles = DivideUp(static_cast<int>(terms.queries), kQueries);
    const int key_tiles = DivideUp(static_cast<int>(terms.keys), kKeys);
    const auto heads = static_cast<int>(terms.heads), parts = static_cast<int>(work.table_parts);
    const auto examples = static_cast<int>(terms.batch), block = static_cast<int>(BlockIndex());
    first_key = block % key_tiles * kKeys;
    first_query = block / key_tiles % query_tiles * kQueries;
    // Blocks that run at once read the same examples.
    h = block / key_tiles / query_tiles % heads;
    part = block / key_tiles / query_tiles / heads;
    first = FirstOfPart(examples, part, parts);
    end = FirstOfPart(examples, part + 1, parts);
  }
};

// Copies what belongs to the examples that have something in the tile. A warp runs it.
class Producer {
 public:
  __device__ Producer(const TableCall& call, const Terms<BFloat16>& terms, const TableShare& share,
                      TableMemory& memory)
      : call_(call), terms_(terms), share_(share), memory_(memory) {}

  __device__ void Run() {
    Place place{share_.first_query, share_.first_key, {}};
    for (int b = share_.first; b < share_.end; ++b) {
      if (FindMask(terms_, b, share_.h, place.own, kQueries, place.passing, kKeys, place.mask)) {
        Copy(b, place);
      }
    }
    End();
  }

 private:
  static constexpr int kRows = kQueries / kWarp;  // of a lane

  __device__ void Copy(int b, const Place& place) {
    RowStatistics rows[kRows];
    LoadStatistics(b, rows);  // before the wait, which takes longer
    WaitFor(memory_.ring.empty[turn_.stage], turn_.parity ^ 1);
    if (LaneIndex() == 0) {
      memory_.places[turn_.stage] = place;
      CopyTiles(b, memory_.stages[turn_.stage], memory_.ring.full[turn_.stage]);
    }
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      memory_.statistics[turn_.stage][LaneIndex() + i * kWarp] = rows[i];
    }
    Publish(b);
  }

  // Says that the threads have written all that belongs to the stage.
  __device__ void Publish(int example) {
    if (LaneIndex() == 0) memory_.examples[turn_.stage] = example;
    Arrive(memory_.ring.full[turn_.stage]);
    turn_ = turn_.Next();
  }

  __device__ void End() {
    WaitFor(memory_.ring.empty[turn_.stage], turn_.parity ^ 1);
    if (LaneIndex() == 0) ArriveExpecting(memory_.ring.full[turn_.stage], 0);
    Publish(kNoExample);
  }

  __device__ void LoadStatistics(int b, RowStatistics (&rows)[kRows]) const {
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      const int query = share_.first_query + LaneIndex() + i * kWarp;
      rows[i] = call_.work.StatisticsOf(b, share_.h, query);
    }
  }

  __device__ void CopyTiles(int b, Tiles& tiles, Barrier& full) const {
    ArriveExpecting(full, static_cast<int>(sizeof(Tiles)));
    call_.queries.StartCopy(tiles.queries[0], b, share_.h, share_.first_query, full);
    call_.keys.StartCopy(tiles.keys[0], b, share_.h, share_.first_key, full);
    call_.dy.StartCopy(tiles.dy[0], b, share_.h, share_.first_query, full);
    call_.values.StartCopy(tiles.values[0], b, share_.h, share_.first_key, full);
  }

  const TableCall& call_;
  const Terms<BFloat16>& terms_;
  const TableShare& share_;
  TableMemory& memory_;
  Turn<kStages> turn_;
};

// Computes the rows of a warp.
class Consumer {
 public:
  __device__ Consumer(const TableCall& call, const Terms<BFloat16>& terms, const TableShare& share,
                      TableMemory& memory)
      : work_(call.work), terms_(terms), share_(share), memory_(memory) {}

  __device__ __forceinline__ void Run() {
    constexpr int kAnyExample = 0;
#pragma unroll
    for (int n = 0; n < kKeyTiles; ++n) {
      WarpSums start;
      StartScores<false>(terms_, kAnyExample, share_.h, PlaceOf(n), start);
      RoundTile(start[0], start_[n]);
    }
    for (int b = Next(); b != kNoExample; b = Next()) AddExample(b);
#pragma unroll
    for (int n = 0; n < kKeyTiles; ++n) Store(PlaceOf(n), sums_[n]);
  }

 private:
  using WarpSums = Fragment[1][kFragments];

  __device__ Place PlaceOf(int key_tile) const {
    return {share_.first_query, share_.first_key + key_tile * kColumns, {}};
  }

  // Waits for the next example.
  __device__ __forceinline__ int Next() {
    WaitFor(memory_.ring.full[turn_.stage], turn_.parity);
    return memory_.examples[turn_.stage];
  }

  __device__ __forceinline__ void AddExample(int b) {
    const RowStatistics* statistics = memory_.statistics[turn_.stage] + WarpIndex() * 16;
    const RowStatistics rows[] = {statistics[FragmentRow(0)], statistics[FragmentRow(2)]};
    // The place could be computed here, but then the compiler would keep all that depends on it in
    // registers.
    Place place = memory_.places[turn_.stage];
    place.mask.pattern = false;  // there is none, which the compiler cannot know
#pragma unroll
    for (int n = 0; n < kKeyTiles; ++n) {
      AddTile(b, place, n, rows);
      place.passing += kColumns;
    }
    ArriveOnce(memory_.ring.empty[turn_.stage]);  // all lanes have read the stage
    turn_ = turn_.Next();
  }

  // Adds dS of 64 keys to the sums. The products are added to sums that begin with the other terms
  // of the scores, or -infinity where a mask leaves a score out, and for dP - D with -D.
  __device__ __forceinline__ void AddTile(int b, const Place& place, int key_tile,
                                          const RowStatistics (&rows)[2]) {
    const Tiles& tiles = memory_.stages[turn_.stage];
    WarpSums scores, differences;
#pragma unroll
    for (FragmentA& start : start_[key_tile]) {
#pragma unroll
      for (uint32_t& pair : start.pair) Forget(pair);
    }
#pragma unroll
    for (int n = 0; n < kFragments; ++n) scores[0][n] = SumsOf(start_[key_tile][n / 2], n % 2);
    MaskScores<false>(terms_, b, share_.h, place, scores);
#pragma unroll
    for (int n = 0; n < kFragments; ++n) {
      differences[0][n] = {-rows[0].mean, -rows[0].mean, -rows[1].mean, -rows[1].mean};
    }
    // Both fences come before the first products. Otherwise ptxas waits for these products before
    // it sets the registers of the others.
    FenceProducts(differences[0]);
    FenceProducts(scores[0]);
    MultiplyTiles(scores[0], tiles.queries[group_], tiles.keys[key_tile]);
    CommitProducts();
    MultiplyTiles(differences[0], tiles.dy[group_], tiles.values[key_tile]);
    CommitProducts();
    WaitForProducts<1>(scores[0]);
#pragma unroll
    for (Fragment& fragment : scores[0]) {
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        fragment.sum[k] = Exponential<BFloat16>(fragment.sum[k], rows[k / 2].offset);
      }
    }
    WaitForProducts<0>(differences[0]);
#pragma unroll
    for (int n = 0; n < kFragments; ++n) {
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        sums_[key_tile][n].sum[k] += scores[0][n].sum[k] * differences[0][n].sum[k];
      }
    }
  }

  // Four lanes store 32 bytes of a row at once: as much as memory moves.
  __device__ void Store(const Place& place, const Fragment (&sums)[kFragments]) const {
    const auto queries = static_cast<int>(terms_.queries);
    const int stride = static_cast<int>(Chunks(terms_.keys)) * kColumns;
    if (place.passing >= stride) return;
    float* to = work_.TableSums(share_.part, share_.h, 0) + place.passing + FragmentColumn(0);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int row = place.own + WarpIndex() * 16 + FragmentRow(2 * half);
      if (row >= queries) continue;
      auto* pairs = reinterpret_cast<Pair*>(to + int64_t{row} * stride);
#pragma unroll
      for (int n = 0; n < kFragments; ++n) {
        pairs[4 * n] = {sums[n].sum[2 * half], sums[n].sum[2 * half + 1]};
      }
    }
  }

  const Recomputation<BFloat16>& work_;
  const Terms<BFloat16>& terms_;
  const TableShare& share_;
  TableMemory& memory_;
  const int group_ = UniformWarpIndex() / kProductWarps;
  Turn<kStages> turn_;
  // What the scores start with: the terms that are not products. Pairs of bf16 take so few
  // registers that the loop has all that it needs.
  FragmentA start_[kKeyTiles][kFragments / 2];
  Fragment sums_[kKeyTiles][kFragments] = {};
};

__global__ void SYNTRA_HOPPER_BOUNDS(kTableThreads, 1)
    HopperTableKernel(const TableCall __grid_constant__ call) {
  if constexpr (kHopperCode) {
    auto& memory = Shared<TableMemory>();
    if (ThreadIndex() == 0) {
      memory.ring.Make(1 + kWarp, kConsumers);  // the tiles, and each lane's rows
      FenceAsync();
    }
    SyncThreads();
    Terms<BFloat16> terms = call.work.call.terms;
    terms.AssumeProducts();
    terms.AssumeByRow();
    const TableShare share(call.work);
    if (WarpIndex() < kConsumers) {
      GetRegisters<kComputing>();
      Consumer(call, terms, share, memory).Run();
    } else {
      GiveRegisters<kCopying>();
      if (WarpIndex() == kConsumers) Producer(call, terms, share, memory).Run();
    }
  }
}

}  // namespace

int64_t TablePartsOnHopper(const Dimensions& z) {
  constexpr int64_t kStoring = 4;  // a block's sums take as long as so many examples
  return PartsFor(z.batch, TilesOf(z), Multiprocessors(), kStoring);
}

void SumTableOnHopper(const KernelArguments& arguments, const Recomputation<BFloat16>& work) {
  TableCall call{.work = work};
  Terms<BFloat16>& z = call.work.call.terms;
  call.keys =
      z.u != nullptr ? MapPositions(z, kKeys) : MapRows(z, z.key, z.keys, z.key_pitch, kKeys);
  z = z.AsProducts();
  call.queries = MapRows(z, z.query, z.queries, z.query_pitch, kQueries);
  call.dy = MapRows(z, work.call.dy, z.queries, z.heads * kColumns, kQueries);
  call.values = MapRows(z, z.value, z.keys, z.value_pitch, kKeys);
  Launch(arguments, {TilesOf(z) * work.table_parts, kTableThreads, sizeof(TableMemory)},
         HopperTableKernel, call);
}

}  // namespace syntra::attention
