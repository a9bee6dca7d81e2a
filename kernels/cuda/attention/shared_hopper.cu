// SPDX-License-Identifier: Apache-2.0
// A block keeps 128 rows of E in shared memory, those of a head, while the activations of its part
// of the batch pass by, two examples side by side. Four warps copy them, 64 inner rows at a time;
// eight warps compute 16 rows of the result each, with products of four warps.
//
// So E is read once for all examples of a block, and each value that is copied is used for 128
// rows. Pieces in which all rows count are copied by maps of the tensors: they take no registers
// and little time, so that all free stages are under way. A map does not know how many rows of an
// example count; where its padding begins, the four warps copy the rows themselves, with zeros for
// the rest.
#include "kernels/cuda/attention/shared_hopper.h"

#include "base/divide.h"
#include "kernels/cuda/attention/hopper_tiles.h"
#include "kernels/cuda/attention/shared_products.h"

namespace syntra::attention {
namespace {

constexpr int kConsumers = 2 * kProductWarps, kCopiers = 4;  // warps
constexpr int kMixThreads = (kConsumers + kCopiers) * kWarp, kCopyThreads = kCopiers * kWarp;
constexpr int kExamples = 2, kMostInner = 512, kChunks = kMostInner / kColumns;
constexpr int kMixStages = 5;

struct MixMemory {
  struct alignas(1024) Chunk {
    RowTile halves[2];
  } exponentials[kChunks];  // 64 inner rows or columns of E, of the upper and the lower 64 rows
  struct alignas(1024) Piece {
    RowTile of[kExamples];
  } pieces[kMixStages];  // 64 inner rows of a pair of examples
  alignas(1024) BFloat16 results[kConsumers][16 * kColumns];
  Barrier loaded[kChunks];
  Ring<kMixStages> ring;
};

static_assert(sizeof(MixMemory) <= HopperSharedBytes());

struct MixCall {
  SharedScores<BFloat16> scores;
  Mixed<BFloat16> mixed;
  int parts;                       // of the batch
  TensorMap exponentials, values;  // `values` are what is mixed
};

__host__ __device__ int64_t PairsOf(int64_t batch) { return DivideUp(batch, kExamples); }

// A block's rows of E and its examples.
struct Share {
  int64_t h;
  int first_row;
  int64_t first_example, end;

  __device__ Share(const MixCall& call, int64_t rows) {
    const int64_t tiles = DivideUp(rows, kSide), rest = BlockIndex() / tiles;
    first_row = static_cast<int>(BlockIndex() % tiles) * kSide;
    h = rest / call.parts;
    const int64_t part = rest % call.parts, pairs = PairsOf(call.scores.batch);
    first_example = pairs * part / call.parts * kExamples;
    end = pairs * (part + 1) / call.parts * kExamples;
  }
};

// Calls body(tile, inner) for the pieces of all pairs of examples, begin(tile) before each pair and
// end(tile) after it.
template <bool kTransposed, typename Begin, typename Body, typename End>
__device__ __forceinline__ void ForPieces(const MixCall& call, const Share& share,
                                          const Begin& begin, const Body& body, const End& end) {
  for (int64_t b = share.first_example; b < share.end; b += kExamples) {
    const MixTile<BFloat16, kTransposed, kExamples> tile(call.scores, share.h, share.first_row, b);
    begin(tile);
    for (int inner = tile.inner_begin; inner < tile.inner_end; inner += kColumns) {
      body(tile, inner);
    }
    end(tile);
  }
}

// Copies all pieces, and each chunk of E before the first piece that needs it.
template <bool kTransposed>
class Copier {
 public:
  __device__ Copier(const MixCall& call, const Share& share, MixMemory& memory)
      : call_(call), share_(share), memory_(memory) {}

  __device__ void Run() {
    const auto nothing = [](const auto&) {};
    ForPieces<kTransposed>(
        call_, share_, nothing,
        [&](const auto& tile, int inner) {
          if (next_chunk_ == kNoChunk) next_chunk_ = inner / kColumns;
          for (; next_chunk_ <= inner / kColumns; ++next_chunk_) {
            if (IsFirst()) CopyChunk(next_chunk_);
          }
          CopyPiece(tile, inner);
        },
        nothing);
  }

 private:
  using Tile = MixTile<BFloat16, kTransposed, kExamples>;
  static constexpr int kNoChunk = -1;  // none was copied

  __device__ static bool IsFirst() { return ThreadIndex() == kConsumers * kWarp; }

  __device__ void CopyChunk(int chunk) {
    MixMemory::Chunk& to = memory_.exponentials[chunk];
    ArriveExpecting(memory_.loaded[chunk], static_cast<int>(sizeof(to)));
    for (int half = 0; half < 2; ++half) {
      const int own = share_.first_row + half * kColumns, inner = chunk * kColumns;
      CopyTileAsync(to.halves[half], call_.exponentials, kTransposed ? own : inner,
                    kTransposed ? inner : own, share_.h, memory_.loaded[chunk]);
    }
  }

  __device__ void CopyPiece(const Tile& tile, int inner) {
    WaitFor(memory_.ring.empty[turn_.stage], turn_.parity ^ 1);
    MixMemory::Piece& to = memory_.pieces[turn_.stage];
    Barrier& full = memory_.ring.full[turn_.stage];
    if (!AllCount(tile, inner)) {
      CopyByThreads(tile, inner, to);
      Arrive(full);
    } else if (IsFirst()) {
      ArriveExpecting(full, static_cast<int>(sizeof(to)));
      for (int e = 0; e < kExamples; ++e) {
        CopyTileAsync(to.of[e], call_.values, static_cast<int>(share_.h) * kColumns, inner,
                      tile.first_example + e, full);
      }
    } else {
      Arrive(full);
    }
    turn_ = turn_.Next();
  }

  // Whether all rows of a piece that the activation has count, in both examples.
  __device__ static bool AllCount(const Tile& tile, int inner) {
    const auto rows = static_cast<int>(tile.InnerRows());
    const int end = inner + kColumns < rows ? inner + kColumns : rows;
    bool all = true;
#pragma unroll
    for (int e = 0; e < kExamples; ++e) all = all && tile.inner_rows[e] >= end;
    return all;
  }

  __device__ void CopyByThreads(const Tile& tile, int inner, MixMemory::Piece& to) const {
    const int64_t stride = call_.scores.heads * call_.scores.head_size;
#pragma unroll
    for (int e = 0; e < kExamples; ++e) {
      const int64_t b = tile.first_example + e;
      CopyTileRows<kCopyThreads, kColumns>(
          call_.mixed.from + tile.ElementOf(b, inner, tile.InnerRows(), 0), stride,
          tile.inner_rows[e] - inner, to.of[e]);
    }
    CommitCopies();
    WaitForCopies<0>();
    FenceAsync();
  }

  const MixCall& call_;
  const Share& share_;
  MixMemory& memory_;
  Turn<kMixStages> turn_;
  int next_chunk_ = kNoChunk;
};

// The rows of a warp.
template <bool kTransposed>
class Consumer {
 public:
  __device__ Consumer(const MixCall& call, const Share& share, MixMemory& memory)
      : call_(call),
        memory_(memory),
        first_row_(share.first_row + warp_ * 16),
        share_(share),
        ring_(memory.ring) {}

  __device__ void Run() {
    ForPieces<kTransposed>(
        call_, share_, [&](const auto& tile) { Begin(tile); },
        [&](const auto&, int inner) { Add(inner); }, [&](const auto& tile) { End(tile); });
  }

 private:
  // Loads what the results are multiplied by, long before they are there.
  template <typename Tile>
  __device__ __forceinline__ void Begin(const Tile& tile) {
#pragma unroll
    for (int e = 0; e < kExamples; ++e) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        factors_[e][half] = tile.Factor(tile.first_example + e, first_row_ + FragmentRow(2 * half));
      }
#pragma unroll
      for (Fragment& fragment : sums_[e]) fragment = {};
    }
  }

  // Starts to add the products of a piece, and waits for those of the piece before.
  __device__ __forceinline__ void Add(int inner) {
    constexpr int kStep = kTransposed ? kColumns : 1;  // between inner elements of E's tile
    const int stage = ring_.Next();
    WaitFor(memory_.loaded[inner / kColumns], 0);
    const uint64_t exponentials =
        TileDescriptor(memory_.exponentials[inner / kColumns].halves[warp_ / kProductWarps]);
    const uint64_t values = TileDescriptor(memory_.pieces[stage].of[0], sizeof(RowTile));
    FenceProducts(sums_);
#pragma unroll
    for (int k = 0; k < kColumns; k += 16) {
      MultiplyAsync<kTransposed, true>(sums_, Further(exponentials, k * kStep),
                                       Further(values, k * kColumns));
    }
    CommitProducts();
    WaitForProducts<1>(sums_);
    ring_.Committed();
  }

  // Stores the results of a pair.
  template <typename Tile>
  __device__ __forceinline__ void End(const Tile& tile) {
    WaitForProducts<0>(sums_);
    ring_.Complete();
    const auto rows = static_cast<int>(tile.Rows());
    const auto stride = static_cast<int>(call_.scores.heads * kColumns);
    BFloat16* results = memory_.results[warp_];
#pragma unroll
    for (int e = 0; e < kExamples; ++e) {
      const int64_t b = tile.first_example + e;
      if (!tile.Fits(b)) continue;
      FragmentA scaled[kColumns / 16];
      Scale(factors_[e], sums_[e]);
      RoundTile(sums_[e], scaled);
      PutRows(scaled, results);
      SyncWarp();
      StoreRowsOfTile(results, {call_.mixed.to + tile.ElementOf(b, first_row_, rows, 0),
                                rows - first_row_, kColumns, stride, call_.mixed.accumulate});
      SyncWarp();  // all lanes have read them
    }
  }

  __device__ __forceinline__ static void Scale(const float (&factors)[2],
                                               Fragment (&sums)[kFragments]) {
#pragma unroll
    for (Fragment& fragment : sums) {
#pragma unroll
      for (int i = 0; i < 4; ++i) fragment.sum[i] *= factors[i / 2];
    }
  }

  const MixCall& call_;
  MixMemory& memory_;
  const int warp_ = UniformWarpIndex(), first_row_;
  const Share& share_;
  RingReader<kMixStages> ring_;
  float factors_[kExamples][2];  // of the lane's rows
  Fragment sums_[kExamples][kFragments];
};

template <bool kTransposed>
__global__ void SYNTRA_HOPPER_BOUNDS(kMixThreads, 1)
    HopperMixKernel(const MixCall __grid_constant__ call) {
  if constexpr (kHopperCode) {
    auto& memory = Shared<MixMemory>();
    if (ThreadIndex() == 0) {
      for (Barrier& loaded : memory.loaded) MakeBarrier(loaded, 1);
      memory.ring.Make(kCopyThreads, kConsumers);
      FenceAsync();
    }
    SyncThreads();
    const Share share(call, kTransposed ? call.scores.keys : call.scores.queries);
    if (UniformWarpIndex() < kConsumers) {
      Consumer<kTransposed>(call, share, memory).Run();
    } else {
      Copier<kTransposed>(call, share, memory).Run();
    }
  }
}

// Blocks of the result: 128 rows of a head each.
int64_t TilesOf(int64_t heads, int64_t rows) { return heads * DivideUp(rows, kSide); }

}  // namespace

template <bool kTransposed>
int64_t MixPartsOnHopper(const Dimensions& z) {
  constexpr int64_t kLoading = 1;  // copying E takes as long as so many pairs of examples
  const int64_t rows = kTransposed ? z.keys : z.queries, inner = kTransposed ? z.queries : z.keys;
  const bool serves = z.head_size == kColumns && inner <= kMostInner;
  if (!serves || !HasHopperCode(HopperMixKernel<kTransposed>)) return 0;
  return PartsFor(PairsOf(z.batch), TilesOf(z.heads, rows), Multiprocessors(), kLoading);
}

template <bool kTransposed>
void MixOnHopper(const KernelArguments& arguments, const SharedScores<BFloat16>& scores,
                 const Mixed<BFloat16>& mixed, int64_t parts) {
  const int64_t rows = kTransposed ? scores.keys : scores.queries;
  const int64_t inner = kTransposed ? scores.queries : scores.keys,
                columns = scores.heads * kColumns;
  const MixCall call{
      scores, mixed, static_cast<int>(parts),
      MapTiles({scores.exponentials, scores.heads, scores.queries, scores.stride, scores.stride},
               kColumns),
      MapTiles({mixed.from, scores.batch, inner, columns, columns}, kColumns)};
  Launch(arguments, {TilesOf(scores.heads, rows) * parts, kMixThreads, sizeof(MixMemory)},
         HopperMixKernel<kTransposed>, call);
}

#define SYNTRA_FOR_DIRECTION(kTransposed)                                                       \
  template int64_t MixPartsOnHopper<kTransposed>(const Dimensions&);                            \
  template void MixOnHopper<kTransposed>(const KernelArguments&, const SharedScores<BFloat16>&, \
                                         const Mixed<BFloat16>&, int64_t);
SYNTRA_FOR_DIRECTION(false)
SYNTRA_FOR_DIRECTION(true)
#undef SYNTRA_FOR_DIRECTION

}  // namespace syntra::attention
