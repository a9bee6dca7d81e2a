// SPDX-License-Identifier: Apache-2.0
// A block computes 128 queries of one (example, head). One thread of it finds the tiles of keys
// that are needed and copies them to stages of shared memory; eight warps compute 16 queries each,
// with products of four warps. Barriers say when a stage is full and when it is empty. The rest is
// as on other GPUs (attention.cu).
#include "kernels/cuda/attention_hopper.h"

#include "base/divide.h"
#include "kernels/cuda/hopper.h"

namespace syntra::attention {
namespace {

constexpr int kConsumers = 2 * kProductWarps;  // warps
constexpr int kQueries = 16 * kConsumers, kKeys = kPassing<BFloat16>;
constexpr int kHopperThreads = (kConsumers + 1) * kWarp;
// The blocks of a multiprocessor: as many as registers allow. Calls with tables need more.
template <bool kPlain>
constexpr int kBlocks = kPlain ? 2 : 1;
constexpr int kStages = 3;

struct Stage {
  alignas(1024) BFloat16 keys[kKeys * kColumns], values[kKeys * kColumns];
};

struct HopperMemory {
  alignas(1024) BFloat16 queries[kQueries * kColumns];
  Stage stages[kStages];
  SumsBuffer sums[kConsumers];
  Place places[kStages];  // of the stages' tiles
  Ring<kStages> ring;
};

struct HopperCall {
  TensorMap queries, keys, values;
  Forward<BFloat16> forward;
};

template <bool kPlain>
class HopperBlock {
 public:
  // `forward`: the call's, of which the compiler knows what it lacks.
  __device__ HopperBlock(const HopperCall& call, const Forward<BFloat16>& forward)
      : call_(call), forward_(forward), memory_(Shared<HopperMemory>()) {
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
      FenceAsync();
    }
    SyncThreads();
    if (WarpIndex() < kConsumers) {
      Consume();
    } else if (LaneIndex() == 0) {
      Produce();
    }
  }

 private:
  static constexpr int kStageBytes = sizeof(Stage), kQueryBytes = sizeof(HopperMemory::queries);
  static constexpr int kNoTile = -1;  // instead of a place's first key: there are no more tiles

  // Copies the queries, and the tiles of keys and values that FindNext finds.
  __device__ __forceinline__ void Produce() {
    const int column = h_ * kColumns;
    Place place{first_query_, -kKeys, {}};
    bool first = true;
    for (Turn<kStages> turn;; turn = turn.Next(), first = false) {
      const bool more = FindNext<false>(terms_, b_, h_, kQueries, place);
      if (!more) place.passing = kNoTile;
      WaitFor(memory_.ring.empty[turn.stage], turn.parity ^ 1);
      memory_.places[turn.stage] = place;
      Barrier& full = memory_.ring.full[turn.stage];
      ArriveExpecting(full, more ? kStageBytes + (first ? kQueryBytes : 0) : 0);
      if (!more) return;
      if (first) CopyTileAsync(memory_.queries, call_.queries, column, first_query_, b_, full);
      Stage& stage = memory_.stages[turn.stage];
      CopyTileAsync(stage.keys, call_.keys, column, place.passing, b_, full);
      CopyTileAsync(stage.values, call_.values, column, place.passing, b_, full);
    }
  }

  // Computes the rows of a warp.
  __device__ __forceinline__ void Consume() {
    Turn<kStages> turn;
    bool more = Start(turn);
    while (more) {
      AddProducts(turn.stage);
      MaskScores<false>(terms_, b_, h_, place_, scores_);
      rows_.Weigh(scores_);
      AddValues(turn.stage);
      SyncWarp();  // all lanes have read the place
      if (LaneIndex() == 0) Arrive(memory_.ring.empty[turn.stage]);
      turn = turn.Next();
      more = Start(turn);
    }
    rows_.Store(forward_, b_, h_, first_query_, memory_.sums[WarpIndex()]);
  }

  // Waits for a tile and starts its scores. Returns false if there is none.
  __device__ __forceinline__ bool Start(const Turn<kStages>& turn) {
    WaitFor(memory_.ring.full[turn.stage], turn.parity);
    place_ = memory_.places[turn.stage];
    place_.mask.pattern = false;  // there is none, which the compiler cannot know
    if (place_.passing == kNoTile) return false;
    StartScores<false>(terms_, b_, h_, place_, scores_);
    return true;
  }

  // Adds the products of queries and keys to the scores.
  __device__ __forceinline__ void AddProducts(int stage) {
    constexpr int kRows = 16 * kProductWarps;
    const BFloat16* queries = memory_.queries + WarpIndex() / kProductWarps * kRows * kColumns;
    const BFloat16* keys = memory_.stages[stage].keys;
    FenceProducts(scores_[0]);
#pragma unroll
    for (int k = 0; k < kColumns; k += 16) {
      MultiplyAsync(scores_[0], TileDescriptor(queries + k), TileDescriptor(keys + k));
    }
    CommitProducts();
    WaitForProducts(scores_[0]);
  }

  // Adds the products of weights and values to y.
  __device__ __forceinline__ void AddValues(int stage) {
    constexpr int kSteps = kKeys / 16;
    const BFloat16* values = memory_.stages[stage].values;
    Fragment(&y)[kFragments] = rows_.y[0][0];
    FragmentA weights[kSteps];
#pragma unroll
    for (int k = 0; k < kSteps; ++k) {
      weights[k] = RowsOf(scores_[0][2 * k], scores_[0][2 * k + 1]);
    }
    FenceProducts(y, weights);
#pragma unroll
    for (int k = 0; k < kSteps; ++k) {
      MultiplyAsync(y, weights[k], TileDescriptor(values + 16 * k * kColumns));
    }
    CommitProducts();
    WaitForProducts(y);
  }

  const HopperCall& call_;
  const Forward<BFloat16>& forward_;
  const Terms<BFloat16>& terms_ = forward_.terms;
  HopperMemory& memory_;
  int b_, h_, first_query_;
  Place place_;
  Fragment scores_[1][kFragments];
  ForwardRows<BFloat16, 1, 1> rows_;
};

template <bool kPlain>
__global__ void SYNTRA_HOPPER_BOUNDS(kHopperThreads, kBlocks<kPlain>)
    HopperKernel(const HopperCall __grid_constant__ call) {
  if constexpr (kHopperCode) {
    Forward<BFloat16> forward = call.forward;
    if constexpr (kPlain) {
      forward.terms.AssumePlain();
    } else {
      forward.terms.AssumeProducts();
    }
    HopperBlock<kPlain>(call, forward).Run();
  }
}

}  // namespace

bool HopperServes(const Dimensions& z) {
  return z.head_size == kColumns && HasHopperCode(HopperKernel<true>);
}

void RunOnHopper(const KernelArguments& arguments, const Forward<BFloat16>& forward) {
  const Terms<BFloat16>& z = forward.terms;
  const auto map = [&](const BFloat16* from, int64_t rows, int64_t pitch, int tile_rows) {
    return MapTiles({from, z.batch, rows, z.heads * z.head_size, pitch}, tile_rows);
  };
  const HopperCall call{map(z.query, z.queries, z.query_pitch, kQueries),
                        map(z.key, z.keys, z.key_pitch, kKeys),
                        map(z.value, z.keys, z.value_pitch, kKeys), forward};
  const int64_t tiles = DivideUp(z.queries, kQueries);
  const Grid grid{z.batch * z.heads * tiles, kHopperThreads, sizeof(HopperMemory)};
  WithPlain(z, [&](auto plain) { Launch(arguments, grid, HopperKernel<plain()>, call); });
}

}  // namespace syntra::attention
