// SPDX-License-Identifier: Apache-2.0
// attention_grad for scores of factors (factors.h) on Hopper GPUs. Such scores take no product, so
// recomputing them costs less than what one kernel for all gradients would move through shared
// memory. There are two passes with one product each:
//
//   pass     product      besides                         a block computes
//   queries  dP = dY V^T  da and db by multiply-adds,     a head of a part of the batch, 128
//                         dbias by diagonals              queries at a time
//   keys     dV = P^T dY  -                               256 keys at a time, of one example and
//                                                         head after the other
//
// In both passes one thread copies tiles of the other side to stages of shared memory. A warp
// computes 16 rows, and products are those of four warps. In the pass over queries the thread that
// copies computes, too: a warp for it would leave the others too few registers. In the pass over
// keys P^T is in registers, so the first tiles of the next keys arrive while the last results are
// stored.
#include "kernels/cuda/attention/factors_grad_hopper.h"

#include "base/divide.h"
#include "kernels/cuda/attention/factors.h"
#include "kernels/cuda/attention/forward.h"
#include "kernels/cuda/hopper.h"

namespace syntra::attention {
namespace {

constexpr int kStages = 3;
constexpr int kSteps = kColumns / 16;  // of a product's inner elements
// In the pass over keys: the registers of a thread of the four warps to which the copying thread
// belongs. They give the rest to the warps that compute.
constexpr int kCopying = 32;

// Tiles in the layout of CopyTileAsync.
using PassingTile = BFloat16[kPassing<BFloat16> * kColumns];

struct FactorsCall {
  MappedRows dy, a, b, values;
  Recomputation<BFloat16> work;
};

// The pass over queries.

constexpr int kQueryWarps = 2 * kProductWarps, kQueries = 16 * kQueryWarps;
constexpr int kQueryThreads = kQueryWarps * kWarp;
constexpr int kQueryBlocks = 2;  // of a multiprocessor

struct QueryMemory {
  struct Own {
    alignas(1024) BFloat16 dy[kQueries * kColumns], a[kQueries * kColumns], b[kQueries * kColumns];
  } own;
  alignas(1024) BFloat16 d_b[kQueries * kColumns];
  alignas(1024) PassingTile values[kStages];
  SkewedRows<BFloat16> skewed[kQueryWarps];
  RowStatistics statistics[kQueries];
  Place places[kStages];  // of the stages' tiles
  Ring<kStages> ring;
  Barrier own_full, own_empty;
  // What the copying thread copies next. Its registers are those of all threads.
  Place next;
  Turn<kStages> filled;
};
static_assert(sizeof(QueryMemory) <= HopperSharedBytes(kQueryBlocks));

// A block of the pass over queries. kSize: Na.
template <int kSize>
class QueryBlock {
 public:
  // `terms`: those of the call, from which the compiler knows what is absent (AssumeFactors).
  __device__ QueryBlock(const FactorsCall& call, const Terms<BFloat16>& terms)
      : call_(call), terms_(terms) {}

  // All threads of the block call it.
  __device__ __forceinline__ void Run() {
    if (ThreadIndex() == 0) {
      memory_.ring.Make(1, kQueryWarps);
      MakeBarrier(memory_.own_full, 1);
      MakeBarrier(memory_.own_empty, kQueryWarps);
      memory_.filled = {};
      FenceAsync();
    }
    SyncThreads();
    line_ = StartLine(work_, share_.part, share_.h, 0, WarpIndex());
    const int tiles = DivideUp(static_cast<int>(terms_.queries), kQueries);
    for (int item = share_.first * tiles; item < share_.end * tiles; ++item) {
      b_ = item / tiles;
      ComputeQueries(item % tiles * kQueries);
      parity_ ^= 1;
    }
    if (line_ != nullptr) far_.AddTo(line_, work_, 0);
  }

 private:
  static constexpr int kN = RowFactors<kSize>::kN;

  __device__ __forceinline__ void ComputeQueries(int own) {
    if (ThreadIndex() == 0) StartCopies(own);
    place_.own = own;
    Start();
    while (tiles_.Find(place_)) {
      ComputeGradients();
      AddToFactors();
      if (line_ != nullptr && FirstQuery() < terms_.queries) {
        const auto from = static_cast<int>(work_.PaddedKeys()) + 14 + FirstQuery() - place_.passing;
        AddToLine<false>(terms_, place_, d_scores_, memory_.skewed[WarpIndex()], line_ + from,
                         far_);
      }
    }
    Store();
    FenceAsync();  // the next copy overwrites da
    ArriveOnce(memory_.own_empty);
  }

  // Copies the rows of the block's queries and the first tiles of keys. One thread calls it.
  __device__ __forceinline__ void StartCopies(int own) {
    const int h = share_.h;
    WaitFor(memory_.own_empty, parity_ ^ 1);
    ArriveExpecting(memory_.own_full, static_cast<int>(sizeof(memory_.own)));
    call_.dy.StartCopy(memory_.own.dy, b_, h, own, memory_.own_full);
    call_.a.StartCopy(memory_.own.a, b_, h, own, memory_.own_full);
    call_.b.StartCopy(memory_.own.b, b_, h, own, memory_.own_full);
    memory_.next = {own, -kPassing<BFloat16>, {}};
    for (int ahead = 1; ahead < kStages; ++ahead) CopyNext();
  }
  // Copies the next tile of keys that FindNext finds, once the warps have used the stage. One
  // thread calls it.
  __device__ __forceinline__ void CopyNext() {
    Place& place = memory_.next;
    if (place.passing == kNoTile) return;
    const Turn<kStages> turn = memory_.filled;
    memory_.filled = turn.Next();
    Barrier* full =
        AnnounceNext<false>(terms_, b_, share_.h, kQueries, place, memory_.ring, memory_.places,
                            turn, static_cast<int>(sizeof(PassingTile)));
    if (full == nullptr) return;
    call_.values.StartCopy(memory_.values[turn.stage], b_, share_.h, place.passing, *full);
  }

  __device__ __forceinline__ int FirstQuery() const { return place_.own + WarpIndex() * 16; }

  __device__ __forceinline__ void Start() {
    if (LaneIndex() < 16) {
      const int i = FirstQuery() + LaneIndex();
      memory_.statistics[WarpIndex() * 16 + LaneIndex()] = work_.StatisticsOf(b_, share_.h, i);
    }
#pragma unroll
    for (Fragment& fragment : d_a_) fragment = {};
    // Tiles of keys that are skipped leave db zero.
    BFloat16* rows = memory_.d_b + WarpIndex() * 16 * kColumns;
#pragma unroll
    for (int e = LaneIndex() * kEight; e < 16 * kColumns; e += kWarp * kEight) {
      StoreWholeEight(Eight{}, rows + e);
    }
    SyncWarp();
    WaitFor(memory_.own_full, parity_);
  }

  // Computes dS. P comes first: while it is computed, dP must not have registers, too.
  __device__ __forceinline__ void ComputeGradients() {
    Fragment weights[1][kFragments];
    StartScores<false>(terms_, b_, share_.h, place_, weights);
    factors_.AddTo(weights[0], place_.passing);
    MaskScores<false>(terms_, b_, share_.h, place_, weights);
#pragma unroll
    for (Fragment& fragment : weights[0]) {
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        fragment.sum[k] = Exponential<BFloat16>(fragment.sum[k], StatisticsOf(k).offset);
      }
    }
    MultiplyByValues();
#pragma unroll
    for (int n = 0; n < kFragments; ++n) {
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        float& gradient = d_scores_[n].sum[k];
        gradient = weights[0][n].sum[k] * (gradient - StatisticsOf(k).mean);
      }
    }
  }

  // The statistics of the query of element k of a fragment.
  __device__ __forceinline__ const RowStatistics& StatisticsOf(int k) const {
    return memory_.statistics[WarpIndex() * 16 + FragmentRow(k)];
  }

  // Sets d_scores_ to dP = dY V^T, and frees the stage.
  __device__ __forceinline__ void MultiplyByValues() {
    const int group = WarpIndex() / kProductWarps;
    const BFloat16* dy = memory_.own.dy + group * 16 * kProductWarps * kColumns;
#pragma unroll
    for (Fragment& fragment : d_scores_) fragment = {};
    FenceProducts(d_scores_);
    MultiplyTiles(d_scores_, dy, memory_.values[tiles_.stage()]);
    CommitProducts();
    WaitForProducts(d_scores_);
    tiles_.Release();
    if (ThreadIndex() == 0) CopyNext();
    SyncWarp();
  }

  // Adds the tile's share of da, and stores db of the tile's keys: no other tile adds to it.
  __device__ __forceinline__ void AddToFactors() {
    factors_.AddGradients(d_scores_, place_.passing, d_a_, [&](int place, float sum) {
      sum = QuadSum(sum);
      if (LaneIndex() % 4 == 0) memory_.d_b[place] = FromFloat<BFloat16>(sum);
    });
  }

  __device__ __forceinline__ void Store() {
    const Backward<BFloat16>& call = work_.call;
    SyncWarp();  // all lanes have read a, whose place da takes
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int row = WarpIndex() * 16 + FragmentRow(2 * half);
#pragma unroll
      for (int n = 0; n < kN; ++n) {
        BFloat16* to = SwizzledAt(memory_.own.a, row, 8 * n + FragmentColumn(0));
        const float* sum = d_a_[n].sum + 2 * half;
        *reinterpret_cast<uint32_t*>(to) = PairOf(sum[0], sum[1]);
      }
    }
    SyncWarp();
    StoreRows(memory_.own.a, call.da, terms_.a_size, call.accumulate[kA]);
    StoreRows(memory_.d_b, call.db, terms_.b_size, call.accumulate[kB]);
  }
  // Stores the warp's rows of a tile.
  __device__ __forceinline__ void StoreRows(const BFloat16* tile, BFloat16* to, int64_t width,
                                            bool accumulate) const {
    if (to == nullptr) return;
    const Target<BFloat16> target =
        TargetAt(to, DenseRows(terms_, terms_.queries, width), b_, share_.h, accumulate);
    const int column = LaneIndex() % 8 * kEight, left = target.width - column;
    if (left <= 0) return;
#pragma unroll
    for (int row = LaneIndex() / 8; row < 16; row += kWarp / 8) {
      if (FirstQuery() + row >= target.rows) continue;
      const Eight values = LoadWholeEight(SwizzledAt(tile, WarpIndex() * 16 + row, column));
      StoreResult(values, target.to + int64_t{FirstQuery() + row} * target.stride + column,
                  left < kEight ? left : kEight, target.accumulate);
    }
  }

  const FactorsCall& call_;
  const Recomputation<BFloat16>& work_ = call_.work;
  const Terms<BFloat16>& terms_;
  const Share share_{work_};
  QueryMemory& memory_ = Shared<QueryMemory>();
  const RowFactors<kSize> factors_{memory_.own.a, memory_.own.b, call_.b.ShiftOf(share_.h)};
  TileReader<kStages> tiles_{memory_.ring, memory_.places};
  int parity_ = 0, b_ = 0;
  float* line_ = nullptr;
  FarSums far_;
  Place place_;
  Fragment d_scores_[kFragments], d_a_[kN];
};

template <int kSize>
__global__ void SYNTRA_HOPPER_BOUNDS(kQueryThreads, kQueryBlocks)
    FactorQueriesKernel(const FactorsCall __grid_constant__ call) {
  if constexpr (kHopperCode) {
    Terms<BFloat16> terms = call.work.call.terms;
    terms.AssumeFactors();
    QueryBlock<kSize>(call, terms).Run();
  }
}

// The pass over keys.

constexpr int kKeyWarps = 4 * kProductWarps, kKeys = 16 * kKeyWarps;
constexpr int kKeyThreads = (kKeyWarps + kProductWarps) * kWarp;
constexpr int kKeyRegisters = 112;

struct KeyMemory {
  struct Stage {
    alignas(1024) PassingTile dy, a, b;
  } stages[kStages];
  SumsBuffer sums[kKeyWarps];
  Place places[kStages];  // of the stages' tiles
  Ring<kStages> ring;
};
static_assert(sizeof(KeyMemory) <= HopperSharedBytes());

// A block of the pass over keys. kSize: Na.
template <int kSize>
class KeyBlock {
 public:
  __device__ KeyBlock(const FactorsCall& call, const Terms<BFloat16>& terms)
      : call_(call), work_(call.work), terms_(terms), memory_(Shared<KeyMemory>()) {}

  // All threads of the block call it.
  __device__ __forceinline__ void Run() {
    if (ThreadIndex() == 0) {
      memory_.ring.Make(1, kKeyWarps);
      FenceAsync();
    }
    SyncThreads();
    if (warp_ < kKeyWarps) {
      GetRegisters<kKeyRegisters>();
      ForKeys([&] { Consume(); });
    } else {
      GiveRegisters<kCopying>();
      Turn<kStages> turn;
      if (ThreadIndex() == kKeyWarps * kWarp) ForKeys([&] { Produce(turn); });
    }
  }

 private:
  // Calls body() for each tile of keys of the block, after setting b_, h_ and first_key_ to it.
  template <typename Body>
  __device__ __forceinline__ void ForKeys(const Body& body) {
    const int tiles = DivideUp(static_cast<int>(terms_.keys), kKeys);
    const auto heads = static_cast<int>(terms_.heads), all = static_cast<int>(terms_.batch);
    const auto block = static_cast<int>(BlockIndex()), blocks = static_cast<int>(BlockCount());
    const int end = FirstOfPart(all * heads * tiles, block + 1, blocks);
    for (int item = FirstOfPart(all * heads * tiles, block, blocks); item < end; ++item) {
      b_ = item / tiles / heads;
      h_ = item / tiles % heads;
      first_key_ = item % tiles * kKeys;
      body();
    }
  }

  // Copies the tiles of queries that FindNext finds.
  __device__ __forceinline__ void Produce(Turn<kStages>& turn) {
    Place place{first_key_, -kPassing<BFloat16>, {}};
    for (bool more = true; more; turn = turn.Next()) {
      KeyMemory::Stage& stage = memory_.stages[turn.stage];
      Barrier* full = AnnounceNext<true>(terms_, b_, h_, kKeys, place, memory_.ring, memory_.places,
                                         turn, static_cast<int>(sizeof(stage)));
      more = full != nullptr;
      if (!more) continue;
      call_.dy.StartCopy(stage.dy, b_, h_, place.passing, *full);
      call_.a.StartCopy(stage.a, b_, h_, place.passing, *full);
      call_.b.StartCopy(stage.b, b_, h_, place.passing, *full);
    }
  }

  // Computes dV of a warp's keys.
  __device__ __forceinline__ void Consume() {
    const int group = warp_ / kProductWarps;
    const bool any = first_key_ + group * 16 * kProductWarps < terms_.keys;
#pragma unroll
    for (Fragment& fragment : d_values_) fragment = {};
    while (tiles_.Find(place_)) {
      if (any) AddTile(memory_.stages[tiles_.stage()]);
      FenceAsync();  // the next copy overwrites a and b, which the lanes have read
      tiles_.Release();
    }
    const Backward<BFloat16>& call = work_.call;
    StoreTile(memory_.sums[warp_], d_values_,
              TargetAt(call.dvalue, {terms_.keys, kColumns, call.dvalue_pitch}, b_, h_,
                       call.accumulate[kValue]),
              FirstKey(), 0);
  }

  __device__ __forceinline__ int FirstKey() const { return first_key_ + warp_ * 16; }

  // dV += P^T dY.
  __device__ __forceinline__ void AddTile(const KeyMemory::Stage& stage) {
    const ColumnStatistics statistics(work_.StatisticsOf(b_, h_) + place_.passing);
    Fragment scores[1][kFragments];
    StartScores<true>(terms_, b_, h_, place_, scores);
    ColumnFactors<kSize>(stage.a, stage.b, call_.b.ShiftOf(h_)).AddTo(scores[0], FirstKey());
    MaskScores<true>(terms_, b_, h_, place_, scores);
#pragma unroll
    for (int n = 0; n < kFragments; ++n) {
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        float& p = scores[0][n].sum[k];
        p = Exponential<BFloat16>(p, statistics(n, k).offset);
      }
    }
    FragmentA weights[kSteps];
    RoundTile(scores[0], weights);
    FenceProducts(d_values_, weights);
    MultiplyTiles(d_values_, weights, stage.dy);
    CommitProducts();
    WaitForProducts(d_values_);
  }

  const FactorsCall& call_;
  const Recomputation<BFloat16>& work_;
  const Terms<BFloat16>& terms_;
  KeyMemory& memory_;
  const int warp_ = UniformWarpIndex();
  TileReader<kStages> tiles_{memory_.ring, memory_.places};
  int b_ = 0, h_ = 0, first_key_ = 0;
  Place place_;
  Fragment d_values_[kFragments];
};

template <int kSize>
__global__ void SYNTRA_HOPPER_BOUNDS(kKeyThreads, 1)
    FactorKeysKernel(const FactorsCall __grid_constant__ call) {
  if constexpr (kHopperCode) {
    Terms<BFloat16> terms = call.work.call.terms;
    terms.AssumeFactors();
    KeyBlock<kSize>(call, terms).Run();
  }
}

// The maps of a call, whose tiles have `query_rows` queries.
FactorsCall MapCall(const Recomputation<BFloat16>& work, int query_rows) {
  const Terms<BFloat16>& z = work.call.terms;
  return {MapRows(z, work.call.dy, z.queries, z.heads * kColumns, query_rows),
          MapFactors(z, z.a, z.a_size, query_rows), MapFactors(z, z.b, z.b_size, query_rows),
          MapRows(z, z.value, z.keys, z.value_pitch, kPassing<BFloat16>), work};
}

}  // namespace

int64_t FactorPartsOnHopper(const Dimensions& z, std::span<const TensorType> inputs) {
  const size_t bytes = std::max(kQueryBlocks * sizeof(QueryMemory), sizeof(KeyMemory));
  if (!HopperServesFactors(z, inputs) || bytes > MostSharedBytes() ||
      !HasHopperCode(FactorQueriesKernel<16>)) {
    return 0;
  }
  return PartsFor(z.batch, z.heads, kQueryBlocks * Multiprocessors(), 0);
}

void RunFactorsOnHopper(const KernelArguments& arguments, const Recomputation<BFloat16>& work) {
  const Backward<BFloat16>& call = work.call;
  const Terms<BFloat16>& z = call.terms;
  WithFactorSize(z.a_size, [&](auto size) {
    if (call.da != nullptr || call.db != nullptr || call.dbias != nullptr) {
      const Grid grid{z.heads * work.parts, kQueryThreads, sizeof(QueryMemory)};
      Launch(arguments, grid, FactorQueriesKernel<size()>, MapCall(work, kQueries));
    }
    if (call.dvalue != nullptr) {
      const int64_t items = z.batch * z.heads * DivideUp(z.keys, int64_t{kKeys});
      const Grid grid{std::min(items, Multiprocessors()), kKeyThreads, sizeof(KeyMemory)};
      Launch(arguments, grid, FactorKeysKernel<size()>, MapCall(work, kPassing<BFloat16>));
    }
  });
}

}  // namespace syntra::attention
