// SPDX-License-Identifier: Apache-2.0
// A block computes 128 queries of one (example, head). One thread of it finds the tiles of keys
// that are needed and copies them to stages of shared memory; eight warps compute 16 queries each,
// with products of four warps. Barriers say when a stage is full and when it is empty. The rest is
// as on other GPUs (attention.cu). u and positions are copied and multiplied as queries and keys
// are (hopper_tiles.h). If scores are products of factors (factors.h), these take
// the place of the queries, and no keys are copied.
#include "kernels/cuda/attention/forward_hopper.h"

#include "base/divide.h"
#include "kernels/cuda/attention/factors.h"
#include "kernels/cuda/attention/hopper_tiles.h"
#include "kernels/cuda/attention/score_starts.h"
#include "kernels/cuda/hopper.h"

namespace syntra::attention {
namespace {

constexpr int kConsumers = 2 * kProductWarps;  // warps
constexpr int kQueries = 16 * kConsumers, kKeys = kPassing<BFloat16>;

// The scores that a kernel is compiled for: kScoreProducts products of rows and keys, or products
// of factors with kFactors elements of a.
template <Table kOfTable, int kScoreProducts, int kFactors = 0>
struct Kind {
  static constexpr Table kTable = kOfTable;
  static constexpr int kProducts = kScoreProducts, kSizeA = kFactors;
  // A block's own tiles: of each product, or of a and b.
  static constexpr int kOwnTiles = kFactors > 0 ? 2 : kProducts;
};

// The blocks of a multiprocessor: as many as registers allow.
template <typename Kind>
constexpr int kBlocks = Kind::kTable == Table::kAny ? 1 : 2;
constexpr int kHopperThreads = (kConsumers + 1) * kWarp;
constexpr int kStages = 3;

// Tiles in the layout of CopyTileAsync.
using OwnTile = BFloat16[kQueries * kColumns];
using PassingTile = BFloat16[kKeys * kColumns];

// The keys of each product, and the values.
template <typename Kind>
struct Stage {
  alignas(1024) PassingTile tiles[Kind::kProducts + 1];

  __device__ PassingTile& Values() { return tiles[Kind::kProducts]; }
};

// Stages, and a buffer for each consumer's rows. With two products the buffers take the place of
// the stages: otherwise there would be no room for two blocks on a multiprocessor.
template <typename Kind>
constexpr bool kBuffersAreStages = Kind::kProducts == 2;
template <typename Kind, bool kShared = kBuffersAreStages<Kind>>
struct StagesAndBuffers {
  Stage<Kind> stages[kStages];
  SumsBuffer sums[kConsumers];
};
template <typename Kind>
struct StagesAndBuffers<Kind, true> {
  union {
    Stage<Kind> stages[kStages];
    SumsBuffer sums[kConsumers];  // when no stage is in use any more
  };
};

template <typename Kind>
struct HopperMemory : StagesAndBuffers<Kind> {
  alignas(1024) OwnTile own[Kind::kOwnTiles];
  Place places[kStages];  // of the stages' tiles
  Ring<kStages> ring;
  Barrier done;  // the consumers with all stages
};

static_assert(sizeof(HopperMemory<Kind<Table::kNone, 2>>) <= HopperSharedBytes(2));

constexpr int kMostProducts = 2;
struct HopperCall {
  MappedRows own[kMostProducts], keys[kMostProducts];  // of the products that the call has
  MappedRows values;
  Forward<BFloat16> forward;
};

template <typename Kind>
class HopperBlock {
 public:
  // `forward`: that of the call, from whose terms the compiler knows what is absent
  // (AssumeFactors, AssumeTable).
  __device__ HopperBlock(const HopperCall& call, const Forward<BFloat16>& forward)
      : call_(call), forward_(forward), memory_(Shared<Memory>()) {
    const auto heads = static_cast<int>(terms_.heads), block = static_cast<int>(BlockIndex());
    const int tiles = DivideUp(static_cast<int>(terms_.queries), kQueries);
    b_ = block / tiles / heads;
    h_ = block / tiles % heads;
    first_query_ = block % tiles * kQueries;
  }

  // All threads of the block call it.
  __device__ __forceinline__ void Run() {
    if (ThreadIndex() == 0) {
      memory_.ring.Make(1, kConsumers);
      MakeBarrier(memory_.done, kConsumers);
      FenceAsync();
    }
    SyncThreads();
    if (warp_ < kConsumers) {
      Consume();
    } else if (ThreadIndex() == kConsumers * kWarp) {
      Produce();
    }
  }

 private:
  using Memory = HopperMemory<Kind>;
  static constexpr int kOwnBytes = sizeof(Memory::own), kStageBytes = sizeof(Stage<Kind>);

  // Copies the queries or factors, and the tiles of keys and values that FindNext finds.
  __device__ __forceinline__ void Produce() {
    Place place{first_query_, -kKeys, {}};
    bool first = true;
    for (Turn<kStages> turn;; turn = turn.Next(), first = false) {
      Barrier* full =
          AnnounceNext<false>(terms_, b_, h_, kQueries, place, memory_.ring, memory_.places, turn,
                              kStageBytes + (first ? kOwnBytes : 0));
      if (full == nullptr) return;
      for (int n = 0; n < Kind::kOwnTiles && first; ++n) {
        call_.own[n].StartCopy(memory_.own[n], b_, h_, first_query_, *full);
      }
      Stage<Kind>& stage = memory_.stages[turn.stage];
      for (int n = 0; n < Kind::kProducts; ++n) {
        call_.keys[n].StartCopy(stage.tiles[n], b_, h_, place.passing, *full);
      }
      call_.values.StartCopy(stage.Values(), b_, h_, place.passing, *full);
    }
  }

  // Computes the rows of a warp.
  __device__ __forceinline__ void Consume() {
    Turn<kStages> turn;
    bool more = Start(turn);
    while (more) {
      if constexpr (Kind::kSizeA > 0) {
        RowFactors<Kind::kSizeA>(memory_.own[0], memory_.own[1], call_.own[1].ShiftOf(h_))
            .AddTo(scores_[0], place_.passing);
      } else {
        AddProducts(turn.stage);
      }
      MaskScores<false>(terms_, b_, h_, place_, scores_);
      rows_.Weigh(scores_);
      AddValues(turn.stage);
      ArriveOnce(memory_.ring.empty[turn.stage]);  // all lanes have read the place
      turn = turn.Next();
      more = Start(turn);
    }
    if constexpr (kBuffersAreStages<Kind>) {
      if (LaneIndex() == 0) Arrive(memory_.done);
      WaitFor(memory_.done, 0);  // the last products of all warps are complete
    }
    rows_.Store(forward_, b_, h_, first_query_, memory_.sums[warp_]);
  }

  // Waits for a tile and starts its scores. Returns false if there is none.
  __device__ __forceinline__ bool Start(const Turn<kStages>& turn) {
    if (!WaitForTile(memory_.ring, memory_.places, turn, place_)) return false;
    if constexpr (Kind::kTable == Table::kInStarts) {
      StartTile<false> start;
      start.Load(forward_.starts, terms_, h_, place_);
      start.CopyTo(scores_);
    } else {
      StartScores<false>(terms_, b_, h_, place_, scores_);
    }
    return true;
  }

  // Adds the products of queries and keys to the scores.
  __device__ __forceinline__ void AddProducts(int stage) {
    const int first = warp_ / kProductWarps * (16 * kProductWarps) * kColumns;
    FenceProducts(scores_[0]);
#pragma unroll
    for (int n = 0; n < Kind::kProducts; ++n) {
      MultiplyTiles(scores_[0], memory_.own[n] + first, memory_.stages[stage].tiles[n]);
    }
    CommitProducts();
    WaitForProducts(scores_[0]);
  }

  // Adds the products of weights and values to y.
  __device__ __forceinline__ void AddValues(int stage) {
    Fragment(&y)[kFragments] = rows_.y[0][0];
    FragmentA weights[kKeys / 16];
    RoundTile(scores_[0], weights);
    FenceProducts(y, weights);
    MultiplyTiles(y, weights, memory_.stages[stage].Values());
    CommitProducts();
    WaitForProducts(y);
  }

  const HopperCall& call_;
  const Forward<BFloat16>& forward_;
  const Terms<BFloat16>& terms_ = forward_.terms;
  Memory& memory_;
  const int warp_ = UniformWarpIndex();
  int b_, h_, first_query_;
  Place place_;
  Fragment scores_[1][kFragments];
  ForwardRows<BFloat16, 1, 1> rows_;
};

template <typename Kind>
__global__ void SYNTRA_HOPPER_BOUNDS(kHopperThreads, kBlocks<Kind>)
    HopperKernel(const HopperCall __grid_constant__ call) {
  if constexpr (kHopperCode) {
    Forward<BFloat16> forward = call.forward;
    if constexpr (Kind::kSizeA > 0) {
      forward.terms.AssumeFactors();
    } else {
      AssumeTable<Kind::kTable>(forward.terms);
    }
    HopperBlock<Kind>(call, forward).Run();
  }
}

// Calls body with the Kind of a call's scores.
template <typename Body>
void WithKind(const Terms<BFloat16>& terms, const Body& body) {
  if (terms.a != nullptr) {
    return WithFactorSize(terms.a_size, [&](auto size) { body(Kind<Table::kNone, 0, size()>()); });
  }
  if (terms.query != nullptr && terms.u != nullptr) {
    if (terms.table == nullptr) return body(Kind<Table::kNone, 2>());
    return body(Kind<Table::kAny, 2>());
  }
  WithTable(terms, [&](auto table) { body(Kind<table(), 1>()); });
}

// Maps the operands of the scores.
void MapScores(const Terms<BFloat16>& terms, HopperCall& call) {
  if (terms.a != nullptr) {
    call.own[0] = MapFactors(terms, terms.a, terms.a_size, kQueries);
    call.own[1] = MapFactors(terms, terms.b, terms.b_size, kQueries);
    return;
  }
  int n = 0;
  if (terms.query != nullptr) {
    call.own[n] = MapRows(terms, terms.query, terms.queries, terms.query_pitch, kQueries);
    call.keys[n++] = MapRows(terms, terms.key, terms.keys, terms.key_pitch, kKeys);
  }
  if (terms.u != nullptr) {
    call.own[n] = MapRows(terms, terms.u, terms.queries, terms.heads * kColumns, kQueries);
    call.keys[n] = MapPositions(terms, kKeys);
  }
}

}  // namespace

bool HopperServesForward(const Dimensions& z) {
  return z.head_size == kColumns && HasHopperCode(HopperKernel<Kind<Table::kNone, 1>>);
}

void RunForwardOnHopper(const KernelArguments& arguments, const Forward<BFloat16>& forward) {
  const Terms<BFloat16>& z = forward.terms;
  HopperCall call{.values = MapRows(z, z.value, z.keys, z.value_pitch, kKeys), .forward = forward};
  MapScores(z, call);
  if (forward.starts != nullptr) WriteStarts<false>(arguments, z, forward.starts);
  const int64_t blocks = z.batch * z.heads * DivideUp(z.queries, kQueries);
  WithKind(z, [&]<typename Kind>(Kind) {
    const Grid grid{blocks, kHopperThreads, sizeof(HopperMemory<Kind>)};
    Launch(arguments, grid, HopperKernel<Kind>, call);
  });
}

}  // namespace syntra::attention
