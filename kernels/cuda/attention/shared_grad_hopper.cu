// SPDX-License-Identifier: Apache-2.0
// The sums of dS over the batch (shared_grad.cu) on Hopper GPUs. A block computes a tile
// of 128 queries and 256 keys, for a part of the batch: the sum of g_b V_b^T - delta_b over its
// examples. Four warps copy the examples' rows; eight warps compute 16 queries each, with products
// of four warps.
#include "base/divide.h"
#include "kernels/cuda/attention/shared_hopper.h"
#include "kernels/cuda/attention/shared_products.h"
#include "kernels/cuda/attention/tiles.h"
#include "kernels/cuda/hopper.h"

namespace syntra::attention {
namespace {

constexpr int kConsumers = 2 * kProductWarps, kCopiers = 4;  // warps
constexpr int kSumThreads = (kConsumers + kCopiers) * kWarp, kCopyThreads = kCopiers * kWarp;
constexpr int kPairs = 2;  // of tiles of 64 keys
constexpr int kQueries = kSide, kKeys = kPairs * 2 * kColumns;
constexpr int kAhead = 1, kSumStages = 3;

struct SumStage {
  alignas(1024) RowTile g[2], values[2 * kPairs];
};

struct SumMemory {
  SumStage stages[kSumStages];
  SumsBuffer sums[kConsumers];
  Ring<kSumStages> ring;
};

static_assert(sizeof(SumMemory) <= HopperSharedBytes());

struct SumCall {
  ScoreSums<BFloat16> to;
  const BFloat16 *g, *value;
  const float* delta;  // [B, H, T]
};

int64_t TilesOf(const Dimensions& z) {
  return z.heads * DivideUp(z.queries, kQueries) * DivideUp(z.keys, kKeys);
}

// A block's tile and its part of the batch.
struct Share {
  int first_key, first_query;
  int64_t part, h, first_example, end;

  __device__ explicit Share(const ScoreSums<BFloat16>& to) {
    const SharedScores<BFloat16>& scores = to.scores;
    const int64_t key_tiles = DivideUp(scores.keys, kKeys);
    const int64_t query_tiles = DivideUp(scores.queries, kQueries);
    first_key = static_cast<int>(BlockIndex() % key_tiles) * kKeys;
    first_query = static_cast<int>(BlockIndex() / key_tiles % query_tiles) * kQueries;
    const int64_t rest = BlockIndex() / key_tiles / query_tiles;
    part = rest % to.parts;
    h = rest / to.parts;
    first_example = scores.batch * part / to.parts;
    end = scores.batch * (part + 1) / to.parts;
    if (scores.causal && first_key >= first_query + kQueries) end = first_example;
  }

  // Calls body(b) for the examples of which there is something in the tile.
  template <typename Body>
  __device__ __forceinline__ void ForExamples(const SharedScores<BFloat16>& scores,
                                              const Body& body) const {
    for (int64_t b = first_example; b < end; ++b) {
      if (scores.key_lengths[b] > first_key && scores.query_lengths[b] > first_query) body(b);
    }
  }
};

class Copier {
 public:
  __device__ Copier(const SumCall& call, const Share& share, SumMemory& memory)
      : call_(call), share_(share), memory_(memory), ring_(memory.ring) {}

  __device__ void Run() {
    share_.ForExamples(call_.to.scores, [&](int64_t b) { Copy(b); });
    ring_.Finish();
  }

 private:
  __device__ void Copy(int64_t b) {
    const SharedScores<BFloat16>& scores = call_.to.scores;
    const int64_t stride = scores.heads * kColumns;
    SumStage& stage = memory_.stages[ring_.Next()];
    const auto copy = [&](const BFloat16* from, int64_t rows, int first, int there, RowTile& to) {
      CopyTileRows<kCopyThreads, kColumns>(
          from + ((b * rows + first) * scores.heads + share_.h) * kColumns, stride, there - first,
          to);
    };
#pragma unroll
    for (int n = 0; n < 2; ++n) {
      copy(call_.g, scores.queries, share_.first_query + n * kColumns, scores.query_lengths[b],
           stage.g[n]);
    }
#pragma unroll
    for (int n = 0; n < 2 * kPairs; ++n) {
      copy(call_.value, scores.keys, share_.first_key + n * kColumns, scores.key_lengths[b],
           stage.values[n]);
    }
    ring_.Commit();
  }

  const SumCall& call_;
  const Share& share_;
  SumMemory& memory_;
  RingWriter<kSumStages, kAhead> ring_;
};

// The rows of a warp.
class Consumer {
 public:
  __device__ Consumer(const SumCall& call, const Share& share, SumMemory& memory)
      : call_(call), share_(share), memory_(memory), ring_(memory.ring) {}

  __device__ void Run() {
    share_.ForExamples(call_.to.scores, [&](int64_t b) { Add(b); });
    Store();
  }

 private:
  __device__ int Row() const { return share_.first_query + warp_ * 16; }

  // Adds an example's products and waits for them. With them under way beyond the loop, ptxas lets
  // Store change the sums before it waits (tests/cuda/products_in_flight.py found it). The other
  // warps' products keep the tensor cores busy.
  __device__ __forceinline__ void Add(int64_t b) {
    const SharedScores<BFloat16>& scores = call_.to.scores;
    float delta[2];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int i = Row() + FragmentRow(2 * half);
      delta[half] = i < scores.queries ? call_.delta[scores.RowOf(b, share_.h, i)] : 0.0f;
    }
    const int keys = scores.key_lengths[b] - share_.first_key;
    const SumStage& stage = memory_.stages[ring_.Next()];
#pragma unroll
    for (int pair = 0; pair < kPairs; ++pair) FenceProducts(sums_[pair]);
#pragma unroll
    for (int k = 0; k < kColumns; k += 16) {
      const uint64_t g = TileDescriptor(stage.g[warp_ / kProductWarps] + k);
#pragma unroll
      for (int pair = 0; pair < kPairs; ++pair) {
        MultiplyAsync<false, false>(sums_[pair], g, TileDescriptor(stage.values[2 * pair] + k));
      }
    }
    CommitProducts();
#pragma unroll
    for (int pair = 0; pair < kPairs; ++pair) WaitForProducts(sums_[pair]);
    ring_.Committed();
    ring_.Complete();
    if (keys < kKeys) {
      Subtract(delta, keys);
      return;
    }
#pragma unroll
    for (int half = 0; half < 2; ++half) delta_[half] += delta[half];
  }

  // delta of an example of which not all of the tile's keys count.
  __device__ __forceinline__ void Subtract(const float (&delta)[2], int keys) {
    ForSums([&](float& sum, int column, int half) {
      if (column < keys) sum -= delta[half];
    });
  }

  // Calls body(sum, column, half) for all sums; half: 0 in the lane's upper row, 1 in the lower.
  template <typename Body>
  __device__ __forceinline__ void ForSums(const Body& body) {
#pragma unroll
    for (int n = 0; n < kKeys / 8; ++n) {
      Fragment& fragment = sums_[n / 16][n / 8 % 2][n % 8];
#pragma unroll
      for (int i = 0; i < 4; ++i) body(fragment.sum[i], 8 * n + FragmentColumn(i), i / 2);
    }
  }

  __device__ void Store() {
    const ScoreSums<BFloat16>& to = call_.to;
    const auto queries = static_cast<int>(to.scores.queries);
    const auto stride = static_cast<int>(to.scores.stride);
    ForSums([&](float& sum, int, int half) { sum -= delta_[half]; });
    const Target<float> target{to.At(share_.part, share_.h, 0), queries, stride, stride, false};
#pragma unroll
    for (int tile = 0; tile < 2 * kPairs; ++tile) {
      StoreTile(memory_.sums[warp_], sums_[tile / 2][tile % 2], target, Row(),
                share_.first_key + tile * kColumns);
    }
  }

  const SumCall& call_;
  const Share& share_;
  SumMemory& memory_;
  const int warp_ = UniformWarpIndex();
  RingReader<kSumStages> ring_;
  float delta_[2] = {};  // of the examples of which all of the tile's keys count, for both rows
  Fragment sums_[kPairs][2][kFragments] = {};
};

__global__ void SYNTRA_HOPPER_BOUNDS(kSumThreads, 1)
    HopperSumsKernel(const SumCall __grid_constant__ call) {
  if constexpr (kHopperCode) {
    auto& memory = Shared<SumMemory>();
    if (ThreadIndex() == 0) {
      memory.ring.Make(kCopyThreads, kConsumers);
      FenceAsync();
    }
    SyncThreads();
    const Share share(call.to);
    if (UniformWarpIndex() < kConsumers) {
      Consumer(call, share, memory).Run();
    } else {
      Copier(call, share, memory).Run();
    }
  }
}

}  // namespace

int64_t SumPartsOnHopper(const Dimensions& z) {
  constexpr int64_t kStoring = 12;  // storing and adding up a block's sums takes so many examples
  if (z.head_size != kColumns || !HasHopperCode(HopperSumsKernel)) return 0;
  return PartsFor(z.batch, TilesOf(z), Multiprocessors(), kStoring);
}

void SumOnHopper(const KernelArguments& arguments, const Dimensions& z,
                 const ScoreSums<BFloat16>& to, const BFloat16* g, const BFloat16* value,
                 const float* delta) {
  Launch(arguments, {TilesOf(z) * to.parts, kSumThreads, sizeof(SumMemory)}, HopperSumsKernel,
         SumCall{to, g, value, delta});
}

}  // namespace syntra::attention
