// SPDX-License-Identifier: Apache-2.0
// A block computes 128 queries of one (example, head). One thread of it finds the tiles of keys
// that are needed and copies them to stages of shared memory; eight warps compute 16 queries each,
// with products of four warps. Barriers say when a stage is full and when it is empty. The rest is
// as on other GPUs (attention.cu). If scores are products of factors (attention_factors.h), these
// take the place of the queries, and no keys are copied.
#include "kernels/cuda/attention_hopper.h"

#include "base/divide.h"
#include "kernels/cuda/attention_factors.h"
#include "kernels/cuda/attention_products.h"
#include "kernels/cuda/hopper.h"

namespace syntra::attention {
namespace {

constexpr int kConsumers = 2 * kProductWarps;  // warps
constexpr int kQueries = 16 * kConsumers, kKeys = kPassing<BFloat16>;
constexpr int kHopperThreads = (kConsumers + 1) * kWarp;

// The scores that a kernel is compiled for: products of queries and keys, without a table if they
// are plain, or products of factors with kFactors elements of a.
template <bool kIsPlain, int kFactors>
struct Kind {
  static constexpr bool kPlain = kIsPlain;
  static constexpr int kSizeA = kFactors;
};

// The blocks of a multiprocessor: as many as registers allow. Calls with tables need more.
template <typename Kind>
constexpr int kBlocks = Kind::kPlain || Kind::kSizeA > 0 ? 2 : 1;
constexpr int kStages = 3;

// Tiles in the layout of CopyTileAsync.
using OwnTile = BFloat16[kQueries * kColumns];
using PassingTile = BFloat16[kKeys * kColumns];

template <bool kFactors>
struct Operands {
  struct Own {
    alignas(1024) OwnTile queries;
  };
  struct Stage {
    alignas(1024) PassingTile keys, values;
  };
};
template <>
struct Operands<true> {
  struct Own {
    alignas(1024) OwnTile a, b;
  };
  struct Stage {
    alignas(1024) PassingTile values;
  };
};

template <bool kFactors>
struct HopperMemory {
  typename Operands<kFactors>::Own own;
  typename Operands<kFactors>::Stage stages[kStages];
  SumsBuffer sums[kConsumers];
  Place places[kStages];  // of the stages' tiles
  Ring<kStages> ring;
};

struct HopperCall {
  TensorMap queries, a, b, values;  // of those that the call has
  MappedKeys keys;
  Forward<BFloat16> forward;
};

template <typename Kind>
class HopperBlock {
 public:
  // `forward`: the call's, of which the compiler knows what it lacks.
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
  static constexpr bool kFactors = Kind::kSizeA > 0;
  using Memory = HopperMemory<kFactors>;
  static constexpr int kOwnBytes = sizeof(Memory::own);
  static constexpr int kStageBytes = sizeof(Memory::stages) / kStages;
  static constexpr int kNoTile = -1;  // instead of a place's first key: there are no more tiles

  // Copies the queries or factors, and the tiles of keys and values that FindNext finds.
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
      ArriveExpecting(full, more ? kStageBytes + (first ? kOwnBytes : 0) : 0);
      if (!more) return;
      if (first) CopyOwn(full);
      auto& stage = memory_.stages[turn.stage];
      if constexpr (!kFactors) {
        call_.keys.StartCopy(stage.keys, b_, h_, place.passing, full);
      }
      CopyTileAsync(stage.values, call_.values, column, place.passing, b_, full);
    }
  }

  __device__ __forceinline__ void CopyOwn(Barrier& full) {
    if constexpr (kFactors) {
      CopyTileAsync(memory_.own.a, call_.a, h_ * Kind::kSizeA, first_query_, b_, full);
      CopyTileAsync(memory_.own.b, call_.b, ColumnsOfB(h_, terms_.b_size).first, first_query_, b_,
                    full);
    } else {
      CopyTileAsync(memory_.own.queries, call_.queries, h_ * kColumns, first_query_, b_, full);
    }
  }

  // Computes the rows of a warp.
  __device__ __forceinline__ void Consume() {
    Turn<kStages> turn;
    bool more = Start(turn);
    while (more) {
      if constexpr (kFactors) {
        RowFactors<Kind::kSizeA>(memory_.own.a, memory_.own.b, ColumnsOfB(h_, terms_.b_size).shift)
            .AddTo(scores_[0], place_.passing);
      } else {
        AddProducts(turn.stage);
      }
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
    const BFloat16* queries = memory_.own.queries + WarpIndex() / kProductWarps * kRows * kColumns;
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
  Memory& memory_;
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
    } else if constexpr (Kind::kPlain) {
      forward.terms.AssumePlain();
    } else {
      forward.terms.AssumeProducts();
    }
    HopperBlock<Kind>(call, forward).Run();
  }
}

// Calls body with the Kind of a call's scores.
template <typename Body>
void WithKind(const Terms<BFloat16>& terms, const Body& body) {
  if (terms.a != nullptr) {
    return WithFactorSize(terms.a_size, [&](auto size) { body(Kind<false, size()>()); });
  }
  WithPlain(terms, [&](auto plain) { body(Kind<plain(), 0>()); });
}

}  // namespace

bool HopperServes(const Dimensions& z) {
  return z.head_size == kColumns && HasHopperCode(HopperKernel<Kind<true, 0>>);
}

void RunOnHopper(const KernelArguments& arguments, const Forward<BFloat16>& forward) {
  Terms<BFloat16> z = forward.terms;
  const auto map = [&](const BFloat16* from, int64_t rows, int64_t pitch, int tile_rows) {
    return MapTiles({from, z.batch, rows, z.heads * z.head_size, pitch}, tile_rows);
  };
  HopperCall call{.values = map(z.value, z.keys, z.value_pitch, kKeys), .forward = forward};
  if (z.a != nullptr) {
    call.a = MapFactors(z, z.a, z.a_size, kQueries);
    call.b = MapFactors(z, z.b, z.b_size, kQueries);
  } else {
    call.keys = MapKeys(z, kKeys);
    if (z.u != nullptr) z = call.forward.terms = z.DenseAsProducts();
    call.queries = map(z.query, z.queries, z.query_pitch, kQueries);
  }
  const int64_t blocks = z.batch * z.heads * DivideUp(z.queries, kQueries);
  WithKind(z, [&]<typename Kind>(Kind) {
    const Grid grid{blocks, kHopperThreads, sizeof(HopperMemory<(Kind::kSizeA > 0)>)};
    Launch(arguments, grid, HopperKernel<Kind>, call);
  });
}

}  // namespace syntra::attention
