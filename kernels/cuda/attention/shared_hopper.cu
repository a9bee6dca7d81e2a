// SPDX-License-Identifier: Apache-2.0
// A block keeps 128 rows of E in shared memory, those of a head, while the activations of its part
// of the batch pass by, two examples side by side. Four warps copy them, 32 inner rows at a time;
// eight warps compute 16 rows of the result each, with products of four warps.
//
// So E is read once for all examples of a block, and each value that is copied is used for 128
// rows. Copies are those of threads: they leave out what is padding, which maps of tensors cannot.
#include "kernels/cuda/attention/shared_hopper.h"

#include "base/divide.h"
#include "kernels/cuda/attention/mix.h"
#include "kernels/cuda/attention/tiles.h"
#include "kernels/cuda/hopper.h"

namespace syntra::attention {
namespace {

constexpr int kConsumers = 2 * kProductWarps, kCopiers = 4;  // warps
constexpr int kMixThreads = (kConsumers + kCopiers) * kWarp, kCopyThreads = kCopiers * kWarp;
constexpr int kExamples = 2, kMostInner = 512;
constexpr int kInnerRows = 32;  // of a piece
// Copies of kAhead pieces may be under way, while products read one piece and the next is complete.
constexpr int kAhead = 4, kMixStages = 7;

// Tiles in the layout of CopyTileAsync.
using ExponentialTile = BFloat16[kColumns * kColumns];
using MixedTile = BFloat16[kInnerRows * kColumns];

struct MixMemory {
  // E, of the upper and the lower 64 rows.
  alignas(1024) ExponentialTile exponentials[kMostInner / kColumns][2];
  alignas(1024) MixedTile mixed[kMixStages][kExamples];
  SumsBuffer sums[kConsumers];
  Barrier loaded;  // E
  Ring<kMixStages> ring;
};

struct MixCall {
  SharedScores<BFloat16> scores;
  Mixed<BFloat16> mixed;
  int parts;  // of the batch
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

// Calls body(tile, inner) for the pieces of all pairs of examples, and done(tile) after each pair.
template <bool kTransposed, typename Body, typename Done>
__device__ __forceinline__ void ForPieces(const MixCall& call, const Share& share, const Body& body,
                                          const Done& done) {
  for (int64_t b = share.first_example; b < share.end; b += kExamples) {
    const MixTile<BFloat16, kTransposed, kExamples> tile(call.scores, share.h, share.first_row, b);
    for (int inner = tile.inner_begin; inner < tile.inner_end; inner += kInnerRows) {
      body(tile, inner);
    }
    done(tile);
  }
}

// Copies E and then all pieces.
template <bool kTransposed>
class Copier {
 public:
  __device__ Copier(const MixCall& call, const Share& share, MixMemory& memory)
      : call_(call), share_(share), memory_(memory), ring_(memory.ring) {}

  __device__ void Run() {
    CopyExponentials();
    ForPieces<kTransposed>(
        call_, share_, [&](const auto& tile, int inner) { CopyPiece(tile, inner); },
        [](const auto&) {});
    ring_.Finish();
  }

 private:
  using Tile = MixTile<BFloat16, kTransposed, kExamples>;

  __device__ void CopyExponentials() {
    const SharedScores<BFloat16>& scores = call_.scores;
    const auto queries = static_cast<int>(scores.queries), stride = static_cast<int>(scores.stride);
    const int inner_rows = kTransposed ? queries : static_cast<int>(scores.keys);
    const int end_of_thread = (ThreadIndex() % 8 + 1) * Line<BFloat16>::kElements;  // in a row
    for (int inner = 0; inner < inner_rows; inner += kColumns) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int row = share_.first_row + half * kColumns;
        const int i = kTransposed ? inner : row, j = kTransposed ? row : inner;
        const bool there = j + end_of_thread <= stride;
        CopyTileRows<kCopyThreads, kColumns>(scores.Exponentials(share_.h, i) + j, stride,
                                             there ? queries - i : 0,
                                             memory_.exponentials[inner / kColumns][half]);
      }
    }
    ring_.Commit(&memory_.loaded);
  }

  __device__ void CopyPiece(const Tile& tile, int inner) {
    const int stage = ring_.Next();
    const int64_t stride = call_.scores.heads * call_.scores.head_size;
#pragma unroll
    for (int e = 0; e < kExamples; ++e) {
      const int64_t b = tile.first_example + e;
      CopyTileRows<kCopyThreads, kInnerRows>(
          call_.mixed.from + tile.ElementOf(b, inner, tile.InnerRows(), 0), stride,
          tile.InnerRowsOf(b) - inner, memory_.mixed[stage][e]);
    }
    ring_.Commit();
  }

  const MixCall& call_;
  const Share& share_;
  MixMemory& memory_;
  RingWriter<kMixStages, kAhead> ring_;
};

// The rows of a warp.
template <bool kTransposed>
class Consumer {
 public:
  __device__ Consumer(const MixCall& call, const Share& share, MixMemory& memory)
      : call_(call), share_(share), memory_(memory), ring_(memory.ring) {}

  __device__ void Run() {
    WaitFor(memory_.loaded, 0);
    ForPieces<kTransposed>(
        call_, share_, [&](const auto&, int inner) { Add(inner); },
        [&](const auto& tile) { Finish(tile); });
  }

 private:
  // Starts to add the products of a piece, and waits for those of the piece before.
  __device__ __forceinline__ void Add(int inner) {
    constexpr int kStep = kTransposed ? kColumns : 1;  // between inner elements of E's tile
    const BFloat16* exponentials =
        memory_.exponentials[inner / kColumns][WarpIndex() / kProductWarps] +
        inner % kColumns * kStep;
    const BFloat16* mixed = memory_.mixed[ring_.Next()][0];
    FenceProducts(sums_);
#pragma unroll
    for (int k = 0; k < kInnerRows; k += 16) {
      MultiplyAsync<kTransposed, true>(sums_, TileDescriptor(exponentials + k * kStep),
                                       TileDescriptor(mixed + k * kColumns, sizeof(MixedTile)));
    }
    CommitProducts();
    WaitForProducts<1>(sums_);
    ring_.Committed();
  }

  template <typename Tile>
  __device__ __forceinline__ void Finish(const Tile& tile) {
    WaitForProducts<0>(sums_);
    ring_.Complete();
    const int row = share_.first_row + WarpIndex() * 16;
    const auto rows = static_cast<int>(tile.Rows());
    const auto stride = static_cast<int>(call_.scores.heads * kColumns);
#pragma unroll
    for (int e = 0; e < kExamples; ++e) {
      const int64_t b = tile.first_example + e;
      if (tile.Fits(b)) {
        Scale(tile, b, row, sums_[e]);
        StoreTile(memory_.sums[WarpIndex()], sums_[e],
                  Target<BFloat16>{call_.mixed.to + tile.ElementOf(b, 0, rows, 0), rows, kColumns,
                                   stride, call_.mixed.accumulate},
                  row, 0);
      }
#pragma unroll
      for (Fragment& fragment : sums_[e]) fragment = {};
    }
  }

  template <typename Tile>
  __device__ __forceinline__ static void Scale(const Tile& tile, int64_t b, int row,
                                               Fragment (&sums)[kFragments]) {
    const float factors[] = {tile.Factor(b, row + FragmentRow(0)),
                             tile.Factor(b, row + FragmentRow(2))};
#pragma unroll
    for (Fragment& fragment : sums) {
#pragma unroll
      for (int i = 0; i < 4; ++i) fragment.sum[i] *= factors[i / 2];
    }
  }

  const MixCall& call_;
  const Share& share_;
  MixMemory& memory_;
  RingReader<kMixStages> ring_;
  Fragment sums_[kExamples][kFragments] = {};
};

template <bool kTransposed>
__global__ void SYNTRA_HOPPER_BOUNDS(kMixThreads, 1)
    HopperMixKernel(const MixCall __grid_constant__ call) {
  if constexpr (kHopperCode) {
    auto& memory = Shared<MixMemory>();
    if (ThreadIndex() == 0) {
      MakeBarrier(memory.loaded, kCopyThreads);
      memory.ring.Make(kCopyThreads, kConsumers);
      FenceAsync();
    }
    SyncThreads();
    const Share share(call, kTransposed ? call.scores.keys : call.scores.queries);
    if (WarpIndex() < kConsumers) {
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
  const int64_t tiles = TilesOf(scores.heads, kTransposed ? scores.keys : scores.queries);
  Launch(arguments, {tiles * parts, kMixThreads, sizeof(MixMemory)}, HopperMixKernel<kTransposed>,
         MixCall{scores, mixed, static_cast<int>(parts)});
}

#define SYNTRA_FOR_DIRECTION(kTransposed)                                                       \
  template int64_t MixPartsOnHopper<kTransposed>(const Dimensions&);                            \
  template void MixOnHopper<kTransposed>(const KernelArguments&, const SharedScores<BFloat16>&, \
                                         const Mixed<BFloat16>&, int64_t);
SYNTRA_FOR_DIRECTION(false)
SYNTRA_FOR_DIRECTION(true)
#undef SYNTRA_FOR_DIRECTION

}  // namespace syntra::attention
