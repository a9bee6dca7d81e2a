// SPDX-License-Identifier: Apache-2.0
// The passes of attention_grad over queries and over keys (two_pass_grad.cu) on Hopper GPUs.
// They compute the calls whose dQ and dU are too large for shared memory, so that both sides cannot
// have one pass (one_pass_grad_hopper.cu). A side has up to three operands, in this order:
//
//   queries  Q, U and dY: S = Q K^T + U p, dP = dY V^T; dQ += dS K, dU += dS p^T
//   keys     K, p^T and V: the same S^T and dP^T; dK += dS^T Q, dp^T += dS^T U, dV += P^T dY
//
// A block has 128 rows of one side (its own rows) of a head, in a part of the batch. For one
// example after the other it loops over tiles of 64 rows of the other side. One thread copies the
// rows of both sides to stages of shared memory. Two groups of four warps compute 64 own rows each;
// P, dS and all sums are in registers.
#include "kernels/cuda/attention/two_pass_grad_hopper.h"

#include "kernels/cuda/attention/hopper_tiles.h"
#include "kernels/cuda/attention/score_starts.h"

namespace syntra::attention {
namespace {

// A kernel's pass, and the number of products in its scores. If there is one, queries and keys may
// be u and positions.
template <bool kKeys, int kScoreProducts>
struct Pass {
  static constexpr bool kOfKeys = kKeys;
  static constexpr int kProducts = kScoreProducts, kOperands = kProducts + 1;
};
constexpr int kMostOperands = 3;

constexpr int kGroups = 2, kConsumers = kGroups * kProductWarps;  // warps
constexpr int kSideThreads = (kConsumers + kProductWarps) * kWarp;
constexpr int kOwn = kGroups * kColumns, kPassingRows = kPassing<BFloat16>;
constexpr int kOwnStages = 2, kStages = 3;
// Registers of a thread. Each has 168 at first. The four warps to which the copying thread belongs
// give some back, and the warps that compute get these.
constexpr int kComputing = 232, kCopying = 40;

template <int kOperands>
struct BlockMemory {
  struct OwnTiles {
    alignas(1024) RowTile of[kOperands][kGroups];
  } own[kOwnStages];
  struct PassingTiles {
    alignas(1024) RowTile of[kOperands];
  } stages[kStages];
  union {  // of a warp
    SkewedRows<BFloat16> skewed;
    SumsBuffer sums;
  } buffers[kConsumers];
  Place places[kStages];  // of the stages' tiles
  Ring<kOwnStages> own_ring;
  Ring<kStages> ring;
};

static_assert(sizeof(BlockMemory<kMostOperands>) <= HopperSharedBytes());

struct SideCall {
  MappedRows own[kMostOperands], passing[kMostOperands];  // of the operands that the call has
  Recomputation<BFloat16> work;
  int parts;  // of the batch, in this pass
};

// The own tiles of all heads. `sizes` are Dimensions or Terms.
template <typename Sizes>
int64_t TilesOf(const Sizes& sizes, bool keys) {
  return sizes.heads * DivideUp(keys ? sizes.keys : sizes.queries, kOwn);
}
template <typename Sizes>
int64_t PartsOf(const Sizes& sizes, bool keys) {
  // Each part of the pass over keys takes memory for sums of its own and time to store them, which
  // should buy more than a few percent.
  const int64_t storing = keys ? 1 : 0;
  return PartsFor(sizes.batch, TilesOf(sizes, keys), Multiprocessors(), storing);
}

// A block's rows and its part of the batch. Blocks of the same head and part are neighbours: they
// read the same rows of the other side.
struct SideShare {
  int own, h, part, first, end;

  __device__ SideShare(const SideCall& call, bool keys) {
    const Terms<BFloat16>& terms = call.work.call.terms;
    const auto rows = static_cast<int>(keys ? terms.keys : terms.queries);
    const auto examples = static_cast<int>(terms.batch), block = static_cast<int>(BlockIndex());
    const int tiles = DivideUp(rows, kOwn);
    own = block % tiles * kOwn;
    part = block / tiles % call.parts;
    h = block / tiles / call.parts;
    first = FirstOfPart(examples, part, call.parts);
    end = FirstOfPart(examples, part + 1, call.parts);
  }
};

// Copies the tiles. One thread runs it.
template <typename Pass>
class Producer {
 public:
  using Memory = BlockMemory<Pass::kOperands>;

  __device__ Producer(const SideCall& call, const Terms<BFloat16>& terms, const SideShare& share,
                      Memory& memory)
      : call_(call), terms_(terms), share_(share), memory_(memory) {}

  __device__ void Run() {
    for (int b = share_.first; b < share_.end; ++b) {
      CopyOwn(b);
      CopyPassing(b);
    }
  }

 private:
  __device__ void CopyOwn(int b) {
    Ring<kOwnStages>& ring = memory_.own_ring;
    WaitFor(ring.empty[own_turn_.stage], own_turn_.parity ^ 1);
    Barrier& full = ring.full[own_turn_.stage];
    ArriveExpecting(full, static_cast<int>(sizeof(typename Memory::OwnTiles)));
    for (int n = 0; n < Pass::kOperands; ++n) {
      RowTile& to = memory_.own[own_turn_.stage].of[n][0];
      call_.own[n].StartCopy(to, b, share_.h, share_.own, full);
    }
    own_turn_ = own_turn_.Next();
  }

  __device__ void CopyPassing(int b) {
    Place place{share_.own, -kPassingRows, {}};
    for (;;) {
      typename Memory::PassingTiles& stage = memory_.stages[turn_.stage];
      Barrier* full =
          AnnounceNext<Pass::kOfKeys>(terms_, b, share_.h, kOwn, place, memory_.ring,
                                      memory_.places, turn_, static_cast<int>(sizeof(stage)));
      turn_ = turn_.Next();
      if (full == nullptr) return;
      for (int n = 0; n < Pass::kOperands; ++n) {
        call_.passing[n].StartCopy(stage.of[n], b, share_.h, place.passing, *full);
      }
    }
  }

  const SideCall& call_;
  const Terms<BFloat16>& terms_;
  const SideShare& share_;
  Memory& memory_;
  Turn<kOwnStages> own_turn_;
  Turn<kStages> turn_;
};

// Computes the rows of a warp.
template <typename Pass>
class Consumer {
 public:
  using Memory = BlockMemory<Pass::kOperands>;

  // `backward`: that of the call, from whose terms the compiler knows what is absent
  // (AssumeProducts).
  __device__ Consumer(const SideCall& call, const Backward<BFloat16>& backward,
                      const SideShare& share, Memory& memory)
      : work_(call.work), call_(backward), share_(share), memory_(memory) {}

  __device__ __forceinline__ void Run() {
    const int tile = share_.own / kOwnRows + group_;
    if (kOfKeys && tile < work_.LineTiles()) {
      line_ = StartLine(work_, share_.part, share_.h, tile, warp_ % kProductWarps);
    }
    if (SumsPositions()) SetZero(sums_[kLast]);
    for (b_ = share_.first; b_ < share_.end; ++b_) {
      StartExample();
      while (tiles_.Find(place_)) ComputeTile();
      ArriveOnce(memory_.own_ring.empty[own_turn_.stage]);
      own_turn_ = own_turn_.Next();
      StoreExample();
    }
    if (line_ != nullptr) far_.AddTo(line_, work_, OwnRow());
    if (SumsPositions()) StorePart();
  }

 private:
  static constexpr bool kOfKeys = Pass::kOfKeys;
  static constexpr int kProducts = Pass::kProducts, kLast = kProducts - 1;
  static constexpr int kValues = kProducts;  // the number of the operand V or dY, which comes last
  using WarpScores = Fragment[1][kFragments];

  __device__ __forceinline__ static void SetZero(Fragment (&sums)[kFragments]) {
#pragma unroll
    for (Fragment& fragment : sums) fragment = {};
  }

  __device__ __forceinline__ int OwnRow() const { return share_.own + warp_ * 16; }

  // Whether the last product's sums are those of dp^T, to which all examples of a block add.
  __device__ __forceinline__ bool SumsPositions() const {
    return kOfKeys && call_.dpositions != nullptr;
  }

  __device__ __forceinline__ void StartExample() {
    if (kProducts > 1) SetZero(sums_[0]);
    if (!SumsPositions()) SetZero(sums_[kLast]);
    if constexpr (kOfKeys) {
      SetZero(sums_[kValues]);
    } else {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int i = OwnRow() + FragmentRow(2 * half);
        own_statistics_[half] = work_.StatisticsOf(b_, share_.h, i);
      }
    }
    WaitFor(memory_.own_ring.full[own_turn_.stage], own_turn_.parity);
  }

  __device__ __forceinline__ void ComputeTile() {
    const typename Memory::OwnTiles& own = memory_.own[own_turn_.stage];
    const typename Memory::PassingTiles& passing = memory_.stages[tiles_.stage()];
    WarpScores scores, d_scores;
    const auto statistics = Statistics();
    StartScores<kOfKeys>(terms_, b_, share_.h, place_, scores);
    if (kProducts == 1 && HasStarts(terms_)) RoundStart(scores);
    SetZero(d_scores[0]);
    FenceProducts(scores[0]);
#pragma unroll
    for (int n = 0; n < kProducts; ++n) {
      MultiplyTiles(scores[0], own.of[n][group_], passing.of[n]);
    }
    CommitProducts();
    FenceProducts(d_scores[0]);
    MultiplyTiles(d_scores[0], own.of[kValues][group_], passing.of[kValues]);
    CommitProducts();
    WaitForProducts<1>(scores[0]);
    MaskScores<kOfKeys>(terms_, b_, share_.h, place_, scores);
    WaitForProducts<0>(d_scores[0]);
    FinishScores<BFloat16>(statistics, scores, d_scores);
    if (line_ != nullptr) {
      AddToLine<kOfKeys>(terms_, place_, d_scores[0], memory_.buffers[warp_].skewed,
                         line_ + place_.passing, far_);
    }
    AddToSums(scores[0], d_scores[0], passing);
    tiles_.Release();
  }

  // The statistics of a tile's queries. Those of passing queries are loaded before the products;
  // those of the warp's own queries are in registers.
  __device__ __forceinline__ auto Statistics() const {
    if constexpr (kOfKeys) {
      return ColumnStatistics(work_.StatisticsOf(b_, share_.h) + place_.passing);
    } else {
      return [this](int, int k) { return own_statistics_[k / 2]; };
    }
  }

  // Adds the products of a tile. It computes all results; those that nobody needs are not stored.
  __device__ __forceinline__ void AddToSums(const Fragment (&scores)[kFragments],
                                            const Fragment (&d_scores)[kFragments],
                                            const typename Memory::PassingTiles& passing) {
    FragmentA weights[kColumns / 16], gradients[kColumns / 16];
    if constexpr (kOfKeys) {
      RoundTile(scores, weights);
      FenceProducts(sums_[kValues], weights);
      MultiplyTiles(sums_[kValues], weights, passing.of[kValues]);
    }
    RoundTile(d_scores, gradients);
#pragma unroll
    for (int n = 0; n < kProducts; ++n) FenceProducts(sums_[n], gradients);
#pragma unroll
    for (int n = 0; n < kProducts; ++n) MultiplyTiles(sums_[n], gradients, passing.of[n]);
    CommitProducts();
#pragma unroll
    for (Fragment(&sums)[kFragments] : sums_) WaitForProducts<0>(sums);
  }

  __device__ __forceinline__ void StoreExample() {
    const auto width = static_cast<int64_t>(kColumns);
    if constexpr (kOfKeys) {
      Store(sums_[0], call_.dkey, kKey, {terms_.keys, width, call_.dkey_pitch});
      Store(sums_[kValues], call_.dvalue, kValue, {terms_.keys, width, call_.dvalue_pitch});
    } else {
      Store(sums_[0], call_.dquery, kQuery, {terms_.queries, width, call_.dquery_pitch});
      Store(sums_[kLast], call_.du, kU, DenseRows(terms_, terms_.queries, width));
    }
    SyncWarp();  // all lanes have read the buffer, where diagonals are next
  }
  __device__ __forceinline__ void Store(const Fragment (&sums)[kFragments], BFloat16* to,
                                        Input input, const PitchedRows& rows) {
    if (to == nullptr) return;
    StoreTile(memory_.buffers[warp_].sums, sums,
              TargetAt(to, rows, b_, share_.h, call_.accumulate[input]), OwnRow(), 0);
  }

  // Stores dp^T of the block's examples.
  __device__ __forceinline__ void StorePart() {
    const Target<float> target{work_.DenseParts(share_.part, share_.h),
                               static_cast<int>(terms_.keys), kColumns, kColumns, false};
    StoreTile(memory_.buffers[warp_].sums, sums_[kLast], target, OwnRow(), 0);
  }

  const Recomputation<BFloat16>& work_;
  const Backward<BFloat16>& call_;
  const Terms<BFloat16>& terms_ = call_.terms;
  const SideShare& share_;
  Memory& memory_;
  const int warp_ = UniformWarpIndex(), group_ = warp_ / kProductWarps;
  int b_ = 0;
  Turn<kOwnStages> own_turn_;
  TileReader<kStages> tiles_{memory_.ring, memory_.places};
  float* line_ = nullptr;
  FarSums far_;
  Place place_;
  RowStatistics own_statistics_[2];
  // The products of dS with the operands of the scores and, of keys, that of P.
  Fragment sums_[kOfKeys ? kProducts + 1 : kProducts][kFragments];
};

template <typename Pass>
__global__ void SYNTRA_HOPPER_BOUNDS(kSideThreads, 1)
    HopperSideKernel(const SideCall __grid_constant__ call) {
  if constexpr (kHopperCode) {
    auto& memory = Shared<BlockMemory<Pass::kOperands>>();
    if (ThreadIndex() == 0) {
      memory.own_ring.Make(1, kConsumers);
      memory.ring.Make(1, kConsumers);
      FenceAsync();
    }
    SyncThreads();
    Backward<BFloat16> backward = call.work.call;
    backward.terms.AssumeProducts();
    const SideShare share(call, Pass::kOfKeys);
    if (UniformWarpIndex() < kConsumers) {
      GetRegisters<kComputing>();
      Consumer<Pass>(call, backward, share, memory).Run();
    } else {
      GiveRegisters<kCopying>();
      if (ThreadIndex() == kConsumers * kWarp) {
        Producer<Pass>(call, backward.terms, share, memory).Run();
      }
    }
  }
}

// Maps the operands of a side, in tiles of so many rows.
void MapQueries(const Backward<BFloat16>& call, int rows, MappedRows (&maps)[kMostOperands]) {
  const Terms<BFloat16>& z = call.terms;
  int n = 0;
  if (z.query != nullptr) maps[n++] = MapRows(z, z.query, z.queries, z.query_pitch, rows);
  if (z.u != nullptr) maps[n++] = MapRows(z, z.u, z.queries, z.heads * kColumns, rows);
  maps[n] = MapRows(z, call.dy, z.queries, z.heads * kColumns, rows);
}
void MapKeys(const Terms<BFloat16>& z, int rows, MappedRows (&maps)[kMostOperands]) {
  int n = 0;
  if (z.query != nullptr) maps[n++] = MapRows(z, z.key, z.keys, z.key_pitch, rows);
  if (z.u != nullptr) maps[n++] = MapPositions(z, rows);
  maps[n] = MapRows(z, z.value, z.keys, z.value_pitch, rows);
}

template <typename Pass>
void RunPass(const KernelArguments& arguments, const SideCall& call) {
  const int64_t blocks = TilesOf(call.work.call.terms, Pass::kOfKeys) * call.parts;
  Launch(arguments, {blocks, kSideThreads, sizeof(BlockMemory<Pass::kOperands>)},
         HopperSideKernel<Pass>, call);
}

template <int kProducts>
void RunPasses(const KernelArguments& arguments, const Recomputation<BFloat16>& work) {
  const Backward<BFloat16>& call = work.call;
  const Terms<BFloat16>& z = call.terms;
  if (call.dquery != nullptr || call.du != nullptr) {
    SideCall queries{.work = work, .parts = static_cast<int>(PartsOf(z, false))};
    MapQueries(call, kOwn, queries.own);
    MapKeys(z, kPassingRows, queries.passing);
    RunPass<Pass<false, kProducts>>(arguments, queries);
  }
  if (call.dkey != nullptr || call.dvalue != nullptr || call.dpositions != nullptr ||
      call.dbias != nullptr) {
    SideCall keys{.work = work, .parts = static_cast<int>(work.parts)};
    MapKeys(z, kOwn, keys.own);
    MapQueries(call, kPassingRows, keys.passing);
    RunPass<Pass<true, kProducts>>(arguments, keys);
  }
}

}  // namespace

int64_t TwoPassPartsOnHopper(const Dimensions& z, std::span<const TensorType> inputs) {
  if (!HopperServesProducts(z, inputs) || sizeof(BlockMemory<kMostOperands>) > MostSharedBytes() ||
      !HasHopperCode(HopperSideKernel<Pass<true, 1>>)) {
    return 0;
  }
  return PartsOf(z, true);
}

void RunTwoPassesOnHopper(const KernelArguments& arguments, const Recomputation<BFloat16>& work) {
  const Terms<BFloat16>& z = work.call.terms;
  const bool both = z.query != nullptr && z.u != nullptr;
  both ? RunPasses<2>(arguments, work) : RunPasses<1>(arguments, work);
}

}  // namespace syntra::attention
