// SPDX-License-Identifier: Apache-2.0
// A block computes a head of some examples, one after the other. The tiles of 128 keys pass one
// after the other, and with each of them the tiles of 64 queries that may read it: five products,
//
//   S^T = K Q^T, dP^T = V dY^T, dV += P^T dY, dK += dS^T Q, dQ += dS K.
//
// dQ of all queries stays in shared memory in f32, so no tile is computed twice, no block waits for
// another, and all sums have a fixed order. That is why there may be no more than 512 queries.
//
// If queries and keys are u and positions, dK is a sum over examples: that of the block's examples
// so far is in the workspace in f32, and each example adds its own.
//
// One thread copies tiles to stages of shared memory. Two groups of four warps compute 64 keys
// each; a warp has 16 of them, and P and dS of its keys are in its registers, where dV and dK take
// them from. dQ takes dS from shared memory, and the groups add to it by turns.
#include "kernels/cuda/attention/one_pass_grad_hopper.h"

#include "kernels/cuda/attention/hopper_tiles.h"
#include "kernels/cuda/attention/score_starts.h"
#include "kernels/cuda/hopper.h"

namespace syntra::attention {
namespace {

constexpr int kGroups = 2, kConsumers = kGroups * kProductWarps;  // warps
constexpr int kKeys = kGroups * kColumns, kQueries = kPassing<BFloat16>;
constexpr int kGradientThreads = (kConsumers + kProductWarps) * kWarp;
// Registers of a thread. Each has 168 at first. The four warps to which the copying thread belongs
// give some back, and the warps that compute get these.
constexpr int kComputing = 232, kCopying = 40;
constexpr int kSteps = kColumns / 16;  // of a product's inner elements

struct Stage {
  alignas(1024) RowTile queries, dy;
};

struct KeyStage {
  alignas(1024) RowTile keys[kGroups], values[kGroups];
};

struct alignas(16) Sums {
  Fragment of_lane[kWarp];
};

// What fits into shared memory: sums of dQ for so many queries, and stages of copied tiles. The
// fewer queries there are, the sooner the next keys are needed, and the more must be under way.
template <int kOfQueries, int kOfStages, int kOfKeyStages>
struct Layout {
  static constexpr int kQueryTiles = kOfQueries / kQueries;
  static constexpr int kStages = kOfStages, kKeyStages = kOfKeyStages;
};
using ForFewQueries = Layout<256, 3, 2>;
using ForMoreQueries = Layout<512, 2, 1>;

template <typename Layout>
struct GradientMemory {
  KeyStage keys[Layout::kKeyStages];
  Stage stages[Layout::kStages];
  alignas(1024) RowTile d_scores[kGroups];  // dS^T: a row for each key
  // dQ, by tile of queries, warp of a group and fragment: each lane's own sums.
  Sums d_queries[Layout::kQueryTiles][kProductWarps][kFragments];
  SkewedRows<BFloat16> skewed[kConsumers];
  Place places[Layout::kStages];  // of the stages' tiles
  Ring<Layout::kStages> ring;
  Ring<Layout::kKeyStages> key_ring;
  Barrier written[kGroups];  // a group's dS
  Barrier added[kGroups];    // to dQ, by a group
  Barrier together;          // of all consumers
};

static_assert(sizeof(GradientMemory<ForFewQueries>) <= HopperSharedBytes());
static_assert(sizeof(GradientMemory<ForMoreQueries>) <= HopperSharedBytes());

struct GradientCall {
  MappedRows queries, dy, keys, values;
  Recomputation<BFloat16> work;
};

// Copies the tiles. One thread runs it.
template <typename Layout>
class Producer {
 public:
  __device__ Producer(const GradientCall& call, const Terms<BFloat16>& terms, const Share& share,
                      GradientMemory<Layout>& memory)
      : call_(call), terms_(terms), share_(share), memory_(memory) {}

  __device__ void Run() {
    for (int b = share_.first; b < share_.end; ++b) {
      for (int own = 0; own < terms_.keys; own += kKeys) CopyKeysAndQueries(b, own);
    }
  }

 private:
  __device__ void CopyKeysAndQueries(int b, int own) {
    Place place{own, -kQueries, {}};
    for (bool first = true;; first = false) {
      Stage& stage = memory_.stages[turn_.stage];
      Barrier* full = AnnounceNext<true>(terms_, b, share_.h, kKeys, place, memory_.ring,
                                         memory_.places, turn_, static_cast<int>(sizeof(Stage)));
      turn_ = turn_.Next();
      if (full == nullptr) return;
      if (first) CopyKeys(b, own);
      call_.queries.StartCopy(stage.queries, b, share_.h, place.passing, *full);
      call_.dy.StartCopy(stage.dy, b, share_.h, place.passing, *full);
    }
  }

  __device__ void CopyKeys(int b, int own) {
    WaitFor(memory_.key_ring.empty[key_turn_.stage], key_turn_.parity ^ 1);
    Barrier& full = memory_.key_ring.full[key_turn_.stage];
    KeyStage& stage = memory_.keys[key_turn_.stage];
    ArriveExpecting(full, static_cast<int>(sizeof(stage)));
    call_.keys.StartCopy(stage.keys[0], b, share_.h, own, full);
    call_.values.StartCopy(stage.values[0], b, share_.h, own, full);
    key_turn_ = key_turn_.Next();
  }

  const GradientCall& call_;
  const Terms<BFloat16>& terms_;
  const Share& share_;
  GradientMemory<Layout>& memory_;
  Turn<Layout::kStages> turn_;
  Turn<Layout::kKeyStages> key_turn_;
};

// Computes the rows of a warp.
template <Table kTable, typename Layout>
class Consumer {
 public:
  // `backward`: that of the call, from whose terms the compiler knows what is absent
  // (AssumeTable).
  __device__ Consumer(const GradientCall& call, const Backward<BFloat16>& backward,
                      const Share& share, GradientMemory<Layout>& memory)
      : work_(call.work), call_(backward), share_(share), memory_(memory) {}

  __device__ __forceinline__ void Run() {
    const float* line = StartLine(work_, share_.part, share_.h, 0, warp_);
    line_ = static_cast<int>((line - work_.bias_lines) / kWarp);
    for (int tile = group_; tile < Layout::kQueryTiles; tile += kGroups) SetZero(tile);
    for (b_ = share_.first; b_ < share_.end; ++b_) {
      WaitTogether();
      for (int own = 0; own < terms_.keys; own += kKeys) ComputeKeys(own);
      WaitTogether();
      StoreQueries();
    }
    if (HasLine()) far_.AddTo(Line(), work_, 0);
  }

 private:
  using WarpSums = Fragment[1][kFragments];

  __device__ __forceinline__ void ComputeKeys(int own) {
#pragma unroll
    for (int n = 0; n < kFragments; ++n) d_keys_[n] = d_values_[n] = {};
    bool any = false;
    while (tiles_.Find(place_)) {
      if (!any) WaitFor(memory_.key_ring.full[key_turn_.stage], key_turn_.parity);
      any = true;
      ComputeTile();
    }
    if (any) {
      ArriveOnce(memory_.key_ring.empty[key_turn_.stage]);
      key_turn_ = key_turn_.Next();
    }
    Fragment before[kFragments] = {};
    if (call_.dpositions != nullptr) LoadPart(own, before);  // while dV is stored
    StoreRows(d_values_,
              {call_.dvalue, static_cast<int>(terms_.keys), kColumns, call_.dvalue_pitch,
               call_.accumulate[kValue]},
              own);
    StoreRows(d_keys_,
              {call_.dkey, static_cast<int>(terms_.keys), kColumns, call_.dkey_pitch,
               call_.accumulate[kKey]},
              own);
    if (call_.dpositions != nullptr) StorePart(own, before);
  }

  // Calls body(pair, n, k) for each pair of the lane's sums in the workspace: those of dK of the
  // warp's 16 keys, elements k and k + 1 of fragment n.
  template <typename Body>
  __device__ __forceinline__ void ForPart(int own, const Body& body) {
    const int row = own + warp_ * 16;
    if (row >= Chunks(terms_.keys) * kColumns) return;
    float* sums = work_.DenseParts(share_.part, share_.h) + row * kColumns;
#pragma unroll
    for (int n = 0; n < kFragments; ++n) {
#pragma unroll
      for (int k = 0; k < 4; k += 2) {
        float* pair = sums + FragmentRow(k) * kColumns + 8 * n + FragmentColumn(k);
        body(*reinterpret_cast<Pair*>(pair), n, k);
      }
    }
  }
  // Loads the sums of the block's examples before.
  __device__ __forceinline__ void LoadPart(int own, Fragment (&before)[kFragments]) {
    if (b_ == share_.first) return;
    ForPart(own, [&](const Pair& pair, int n, int k) {
      before[n].sum[k] = pair.element[0];
      before[n].sum[k + 1] = pair.element[1];
    });
  }
  // Stores them with this example's.
  __device__ __forceinline__ void StorePart(int own, const Fragment (&before)[kFragments]) {
    ForPart(own, [&](Pair& pair, int n, int k) {
      pair = {before[n].sum[k] + d_keys_[n].sum[k], before[n].sum[k + 1] + d_keys_[n].sum[k + 1]};
    });
  }

  __device__ __forceinline__ void ComputeTile() {
    const Stage& stage = memory_.stages[tiles_.stage()];
    WarpSums scores, d_scores;
    const ColumnStatistics statistics(work_.StatisticsOf(b_, share_.h) + place_.passing);
    StartTile<true> start;
    if constexpr (kTable == Table::kInStarts) {
      start.Load(work_.starts, terms_, share_.h, place_);
      SyncWarp();  // otherwise ptxas moves these loads, and those before, behind the products
    }
    StartScores<true>(terms_, b_, share_.h, place_, scores);
#pragma unroll
    for (Fragment& fragment : d_scores[0]) fragment = {};
    // Both fences come before the first products. Otherwise ptxas waits for these products before
    // it sets the registers of the others.
    FenceProducts(d_scores[0]);
    FenceProducts(scores[0]);
    MultiplyTiles(scores[0], memory_.keys[key_turn_.stage].keys[group_], stage.queries);
    CommitProducts();
    MultiplyTiles(d_scores[0], memory_.keys[key_turn_.stage].values[group_], stage.dy);
    CommitProducts();
    WaitForProducts<1>(scores[0]);
    if constexpr (kTable == Table::kInStarts) start.AddTo(scores);
    MaskScores<true>(terms_, b_, share_.h, place_, scores);
    WaitForProducts<0>(d_scores[0]);
    FinishScores<BFloat16>(statistics, scores, d_scores);
    if (HasLine()) AddToLine(d_scores);
    FragmentA weights[kSteps], gradients[kSteps];
    RoundTile(scores[0], weights);
    RoundTile(d_scores[0], gradients);
    if (call_.dvalue != nullptr) StartProduct(d_values_, weights, stage.dy);
    // This must come before a product takes their registers, which nothing may read until the
    // product is complete.
    if (call_.dquery != nullptr) ShareScores(gradients);
    if (call_.dkey != nullptr || call_.dpositions != nullptr) {
      StartProduct(d_keys_, gradients, stage.queries);
    }
    if (call_.dquery != nullptr) AddToQueries();
    WaitForProducts<0>(d_values_);
    WaitForProducts<0>(d_keys_);
    tiles_.Release();
  }

  // The warp's bias line.
  __device__ bool HasLine() const { return work_.bias_lines != nullptr; }
  __device__ float* Line() const { return work_.bias_lines + int64_t{line_} * kWarp; }
  __device__ __forceinline__ void AddToLine(const WarpSums& d_scores) {
    const int from = static_cast<int>(work_.PaddedKeys()) - 16 - place_.own - warp_ * 16;
    attention::AddToLine<true>(terms_, place_, d_scores[0], memory_.skewed[warp_],
                               Line() + from + place_.passing, far_);
  }

  // Starts sums += A B.
  __device__ __forceinline__ static void StartProduct(Fragment (&sums)[kFragments],
                                                      FragmentA (&a)[kSteps], const RowTile& b) {
    FenceProducts(sums, a);
    MultiplyTiles(sums, a, b);
    CommitProducts();
  }

  // Puts the warp's rows of dS where the group's products read them.
  __device__ __forceinline__ void ShareScores(const FragmentA (&gradients)[kSteps]) {
    StorePairs(gradients, memory_.d_scores[group_]);
    FenceAsync();
    ArriveOnce(memory_.written[group_]);
  }

  // dQ += dS K, over the group's keys.
  __device__ __forceinline__ void AddToQueries() {
    const uint64_t d_scores = TileDescriptor(memory_.d_scores[group_]),
                   keys = TileDescriptor(memory_.keys[key_turn_.stage].keys[group_]);
    Fragment sums[kFragments] = {};
    WaitFor(memory_.written[group_], step_parity_);
    FenceProducts(sums);
#pragma unroll
    for (int k = 0; k < kColumns; k += 16) {
      MultiplyAsync<true, true>(sums, Further(d_scores, k * kColumns), Further(keys, k * kColumns));
    }
    CommitProducts();
    WaitForProducts<0>(sums);
    // The first group waits for what the last one added in the step before.
    WaitFor(memory_.added[group_ ^ 1], group_ == 0 ? step_parity_ ^ 1 : step_parity_);
    Sums* all = memory_.d_queries[place_.passing / kQueries][warp_ % kProductWarps];
#pragma unroll
    for (int n = 0; n < kFragments; ++n) {
      Fragment& to = all[n].of_lane[LaneIndex()];
      Fragment sum = to;
#pragma unroll
      for (int i = 0; i < 4; ++i) sum.sum[i] += sums[n].sum[i];
      to = sum;
    }
    ArriveOnce(memory_.added[group_]);
    step_parity_ ^= 1;
  }

  // Stores operand A as the warp's rows of its group's tile, once the products of the group's other
  // warps have read what was there.
  __device__ __forceinline__ void StorePairs(const FragmentA (&rows)[kSteps], RowTile& tile) {
    WaitFor(memory_.added[group_], step_parity_ ^ 1);
    SyncWarp();  // all lanes have read it, too
    PutRows(rows, OwnRows(tile));
  }
  // The warp's rows of its group's tile.
  __device__ __forceinline__ BFloat16* OwnRows(RowTile& tile) const {
    return tile + warp_ % kProductWarps * 16 * kColumns;
  }

  // Stores the warp's 16 rows of its group's 64 from `first` on. Rounds them first.
  __device__ __forceinline__ void StoreRows(const Fragment (&sums)[kFragments],
                                            const Target<BFloat16>& target, int first) {
    if (target.to == nullptr) return;
    StoreWarpRows(sums, target, first + warp_ * 16);
  }
  __device__ __forceinline__ void StoreWarpRows(const Fragment (&sums)[kFragments],
                                                const Target<BFloat16>& target, int first) {
    FragmentA rows[kSteps];
    RoundTile(sums, rows);
    RowTile& tile = memory_.d_scores[group_];
    StorePairs(rows, tile);
    SyncWarp();
    BFloat16* to = target.to + (int64_t{b_} * target.rows + first) * target.stride;
    StoreRowsOfTile(OwnRows(tile), {to + share_.h * kColumns, target.rows - first, kColumns,
                                    target.stride, target.accumulate});
  }

  // Stores dQ of the example, of which each group has every other tile, and sets it to zero.
  __device__ __forceinline__ void StoreQueries() {
    if (call_.dquery == nullptr) return;
    const auto queries = static_cast<int>(terms_.queries);
    const Target<BFloat16> target{call_.dquery, queries, kColumns, call_.dquery_pitch,
                                  call_.accumulate[kQuery]};
    for (int tile = group_; tile * kQueries < queries; tile += kGroups) {
      const int warp = warp_ % kProductWarps;
      Fragment sums[kFragments];
#pragma unroll
      for (int n = 0; n < kFragments; ++n) {
        sums[n] = memory_.d_queries[tile][warp][n].of_lane[LaneIndex()];
      }
      StoreWarpRows(sums, target, tile * kQueries + warp * 16);
      SetZero(tile);
    }
  }
  __device__ __forceinline__ void SetZero(int tile) {
    for (Sums& sums : memory_.d_queries[tile][warp_ % kProductWarps]) {
      sums.of_lane[LaneIndex()] = {};
    }
  }

  // Waits for all consumers.
  __device__ void WaitTogether() {
    ArriveOnce(memory_.together);
    WaitFor(memory_.together, together_parity_);
    together_parity_ ^= 1;
  }

  const Recomputation<BFloat16>& work_;
  const Backward<BFloat16>& call_;
  const Terms<BFloat16>& terms_ = call_.terms;
  const Share& share_;
  GradientMemory<Layout>& memory_;
  const int warp_ = UniformWarpIndex(), group_ = warp_ / kProductWarps;
  int b_ = 0;
  TileReader<Layout::kStages> tiles_{memory_.ring, memory_.places};
  Turn<Layout::kKeyStages> key_turn_;
  int step_parity_ = 0, together_parity_ = 0;
  // Where it is in bias_lines, in multiples of kWarp, as lines are. An address would take one more
  // register.
  int line_ = 0;
  FarSums far_;
  Place place_;
  Fragment d_keys_[kFragments], d_values_[kFragments];
};

template <Table kTable, typename Layout>
__global__ void SYNTRA_HOPPER_BOUNDS(kGradientThreads, 1)
    HopperGradientKernel(const GradientCall __grid_constant__ call) {
  if constexpr (kHopperCode) {
    auto& memory = Shared<GradientMemory<Layout>>();
    if (ThreadIndex() == 0) {
      memory.ring.Make(1, kConsumers);
      memory.key_ring.Make(1, kConsumers);
      for (int group = 0; group < kGroups; ++group) {
        MakeBarrier(memory.written[group], kProductWarps);
        MakeBarrier(memory.added[group], kProductWarps);
      }
      MakeBarrier(memory.together, kConsumers);
      FenceAsync();
    }
    SyncThreads();
    Backward<BFloat16> backward = call.work.call;
    AssumeTable<kTable>(backward.terms);
    const Share share(call.work);
    if (UniformWarpIndex() < kConsumers) {
      GetRegisters<kComputing>();
      Consumer<kTable, Layout>(call, backward, share, memory).Run();
    } else {
      GiveRegisters<kCopying>();
      if (ThreadIndex() == kConsumers * kWarp) {
        Producer<Layout>(call, backward.terms, share, memory).Run();
      }
    }
  }
}

// Makes u and positions queries and keys. Only the gradient of positions stays theirs.
void TakeDenseAsProducts(Backward<BFloat16>& call) {
  call.terms = call.terms.AsProducts();
  call.dquery = call.du;
  call.dquery_pitch = call.terms.query_pitch;
  call.accumulate[kQuery] = call.accumulate[kU];
}

// Whether the layout has sums for all queries of a call. `sizes` are Dimensions or Terms.
template <typename Layout, typename Sizes>
bool Serves(const Sizes& sizes) {
  return sizes.queries <= Layout::kQueryTiles * kQueries;
}

}  // namespace

int64_t OnePassPartsOnHopper(const Dimensions& z, std::span<const TensorType> inputs) {
  const bool both = inputs[kQuery].present() && inputs[kU].present();
  if (!HopperServesProducts(z, inputs) || both || !Serves<ForMoreQueries>(z) ||
      HopperIs("two_passes") || sizeof(GradientMemory<ForMoreQueries>) > MostSharedBytes() ||
      !HasHopperCode(HopperGradientKernel<Table::kNone, ForMoreQueries>)) {
    return 0;
  }
  return PartsFor(z.batch, z.heads, Multiprocessors(), 0);
}

void RunOnePassOnHopper(const KernelArguments& arguments, const Recomputation<BFloat16>& work) {
  GradientCall call{.work = work};
  const Terms<BFloat16>& z = call.work.call.terms;
  if (z.u != nullptr) {
    call.keys = MapPositions(z, kKeys);
    TakeDenseAsProducts(call.work.call);
  } else {
    call.keys = MapRows(z, z.key, z.keys, z.key_pitch, kKeys);
  }
  call.queries = MapRows(z, z.query, z.queries, z.query_pitch, kQueries);
  call.dy = MapRows(z, work.call.dy, z.queries, z.heads * kColumns, kQueries);
  call.values = MapRows(z, z.value, z.keys, z.value_pitch, kKeys);
  if (work.starts != nullptr) WriteStarts<true>(arguments, z, work.starts);
  const auto launch = [&]<typename Layout>(Layout) {
    const Grid grid{z.heads * work.parts, kGradientThreads, sizeof(GradientMemory<Layout>)};
    WithTable(z, [&](auto table) {
      Launch(arguments, grid, HopperGradientKernel<table(), Layout>, call);
    });
  };
  Serves<ForFewQueries>(z) ? launch(ForFewQueries()) : launch(ForMoreQueries());
}

}  // namespace syntra::attention
