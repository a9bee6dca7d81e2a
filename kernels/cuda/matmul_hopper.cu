// SPDX-License-Identifier: Apache-2.0
// Blocks stay on their multiprocessors and compute tiles of 128 x 256 elements, one after the
// other. Neighbouring blocks compute tiles of the same rows of A, which then come from the
// second-level cache. One thread copies pieces of 64 inner elements to a ring of stages, and goes
// on with the next tile while the last one is stored. Two groups of four warps have 64 rows each.
// The second group begins a piece later, so that it multiplies while the first one stores.
#include "kernels/cuda/matmul_hopper.h"

#include "base/divide.h"
#include "kernels/bit_mask.h"
#include "kernels/cuda/hopper.h"
#include "kernels/math/activation.h"

namespace syntra::gpu {
namespace {

constexpr int kGroups = 2, kConsumers = kGroups * kProductWarps;  // warps
constexpr int kHopperThreads = (kConsumers + kProductWarps) * kWarp;
// Registers of a thread: what the threads that compute get is what those around the copying thread
// give back, of the 168 that each has at first.
constexpr int kComputing = 240, kCopying = 24;
constexpr int kPiece = kMappedColumns;  // inner elements
constexpr int kTileRows = 64 * kGroups, kBands = 4, kTileColumns = kBands * kMappedColumns;
constexpr int kRingStages = 4;

struct PieceStage {
  alignas(1024) BFloat16 a[kTileRows * kPiece];
  // B^T's rows of inner elements or, if B is not transposed, bands of 64 columns.
  alignas(1024) BFloat16 b[kTileColumns * kPiece];
};

// Sixteen rows of a band, from which they are stored as lines. Each warp has two, in turns.
using Rows = BFloat16[16 * kMappedColumns];

struct MatmulMemory {
  PieceStage stages[kRingStages];
  alignas(1024) Rows rows[kConsumers][2];
  Ring<kRingStages> ring;
  Barrier begun;  // by the first group
};
static_assert(sizeof(MatmulMemory) <= HopperSharedBytes());

// 256 bits of a row of a mask, in words.
struct alignas(16) MaskWords {
  uint32_t word[4];
};
using RowMask = MaskWords[2];

struct MatmulTiles {
  TensorMap a, b;
  BFloat16* c;
  std::byte* mask;
  int rows, columns, tiles;  // of C
  int pieces;                // of inner elements

  __device__ int RowOf(int tile) const { return tile / (columns / kTileColumns) * kTileRows; }
  __device__ int ColumnOf(int tile) const { return tile % (columns / kTileColumns) * kTileColumns; }
  // The part of a row's mask that belongs to a tile.
  __device__ RowMask& MaskAt(int row, int column) const {
    static_assert(kTileColumns % kMaskRowBits == 0);
    return *reinterpret_cast<RowMask*>(mask + (int64_t{row} * columns + column) / 8);
  }
};

template <bool kTransposedB>
__device__ __forceinline__ void CopyPieces(const MatmulTiles& call, MatmulMemory& memory) {
  Turn<kRingStages> turn;
  for (auto tile = static_cast<int>(BlockIndex()); tile < call.tiles;
       tile += static_cast<int>(BlockCount())) {
    const int row = call.RowOf(tile), column = call.ColumnOf(tile);
    for (int inner = 0; inner < call.pieces * kPiece; inner += kPiece, turn = turn.Next()) {
      PieceStage& stage = memory.stages[turn.stage];
      Barrier& full = memory.ring.full[turn.stage];
      WaitFor(memory.ring.empty[turn.stage], turn.parity ^ 1);
      ArriveExpecting(full, static_cast<int>(sizeof(stage)));
      CopyTileAsync(stage.a, call.a, inner, row, 0, full);
      if constexpr (kTransposedB) {
        CopyTileAsync(stage.b, call.b, inner, column, 0, full);
      } else {
        for (int band = 0; band < kBands; ++band) {
          CopyTileAsync(stage.b + band * kPiece * kMappedColumns, call.b,
                        column + band * kMappedColumns, inner, 0, full);
        }
      }
    }
  }
}

// Computes the 16 rows of a warp.
template <Epilogue kEpilogue, bool kTransposedB>
class MatmulConsumer {
 public:
  __device__ MatmulConsumer(const MatmulTiles& call, MatmulMemory& memory)
      : call_(call), memory_(memory), reader_(memory.ring) {}

  __device__ __forceinline__ void Run() {
    if (!IsFirstGroup()) WaitFor(memory_.begun, 0);
    for (auto tile = static_cast<int>(BlockIndex()); tile < call_.tiles;
         tile += static_cast<int>(BlockCount())) {
      first_ = call_.RowOf(tile) + warp_ * 16;
      column_ = call_.ColumnOf(tile);
      if constexpr (kEpilogue == Epilogue::kMask) LoadMasks();
      Multiply();
      Store();
    }
  }

 private:
  __device__ bool IsFirstGroup() const { return warp_ < kProductWarps; }

  __device__ __forceinline__ void Multiply() {
#pragma unroll
    for (auto& band : sums_) {
#pragma unroll
      for (Fragment& fragment : band) fragment = {};
    }
    for (int piece = 0; piece < call_.pieces; ++piece) {
      const PieceStage& stage = memory_.stages[reader_.Next()];
      const uint64_t a = TileDescriptor(stage.a + warp_ / kProductWarps * 64 * kPiece);
      const uint64_t b = TileDescriptor(stage.b, kPiece * kMappedColumns * sizeof(BFloat16));
      FenceProducts(sums_);
#pragma unroll
      for (int k = 0; k < kPiece; k += 16) {
        MultiplyAsync<false, !kTransposedB>(sums_, Further(a, k),
                                            Further(b, kTransposedB ? k : k * kMappedColumns));
      }
      CommitProducts();
      WaitForProducts<1>(sums_);
      reader_.Committed();
      if (++pieces_ == 2 && IsFirstGroup()) ArriveOnce(memory_.begun);  // the first is complete
    }
    WaitForProducts<0>(sums_);
    reader_.Complete();
  }

  // The row of the lane's elements 0 and 1 or, `half` 1, 2 and 3.
  __device__ __forceinline__ int RowOf(int half) const { return first_ + FragmentRow(2 * half); }

  // Nothing here branches or reads what it loads, so that the loads are on their way during the
  // products.
  __device__ __forceinline__ void LoadMasks() {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      // Rows after the last are not stored, so any mask will do for them.
      const int row = RowOf(half) < call_.rows ? RowOf(half) : call_.rows - 1;
      const RowMask& from = call_.MaskAt(row, column_);
#pragma unroll
      for (int i = 0; i < 2; ++i) masks_[half][i] = from[i];
    }
  }
  // The bit of element i of a band's fragment n, which is in word n / 4 of the band. The word must
  // be shifted so that the lane's bits are where those of lane 0 were: then all lanes use one
  // constant.
  __device__ __forceinline__ static uint32_t BitOf(int n, int i) { return 1u << (n % 4 * 8 + i); }

  __device__ __forceinline__ void Store() {
#pragma unroll
    for (int band = 0; band < kBands; ++band) {
      if constexpr (kEpilogue == Epilogue::kMask) {
        ApplyMask(band);
      } else {
        Rectify(band);
      }
      StoreBand(band);
    }
  }

  __device__ __forceinline__ void ApplyMask(int band) {
#pragma unroll
    for (int n = 0; n < 8; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const uint32_t word =
            masks_[i / 2][band / 2].word[band % 2 * 2 + n / 4] >> FragmentColumn(0);
        float& sum = sums_[band][n].sum[i];
        sum = (word & BitOf(n, i % 2)) != 0 ? sum : 0.0f;
      }
    }
  }

  __device__ __forceinline__ void Rectify(int band) {
#pragma unroll
    for (Fragment& fragment : sums_[band]) {
#pragma unroll
      for (float& sum : fragment.sum) sum = scalar::Relu::Value(sum);
    }
    if constexpr (kEpilogue == Epilogue::kReluMask) WriteMask(band);
  }

  // The four lanes of a row put their bits together; one of them stores the band's two words.
  __device__ __forceinline__ void WriteMask(int band) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      uint32_t words[2] = {};
#pragma unroll
      for (int n = 0; n < 8; ++n) {
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          if (sums_[band][n].sum[2 * half + i] > 0.0f) words[n / 4] |= BitOf(n, i);
        }
      }
#pragma unroll
      for (uint32_t& word : words) {
        word <<= FragmentColumn(0);
        word |= ShuffleXor(word, 1);
        word |= ShuffleXor(word, 2);
      }
      if (LaneIndex() % 4 != band || RowOf(half) >= call_.rows) continue;
      uint32_t* to = call_.MaskAt(RowOf(half), column_)[band / 2].word + band % 2 * 2;
      to[0] = words[0];
      to[1] = words[1];
    }
  }

  __device__ __forceinline__ void StoreBand(int band) {
    Rows& rows = memory_.rows[warp_][band % 2];
    FragmentA pairs[kMappedColumns / 16];
    RoundTile(sums_[band], pairs);
    PutRows(pairs, rows);
    SyncWarp();
    const int piece = LaneIndex() % 8 * kEight;
#pragma unroll
    for (int row = LaneIndex() / 8; row < 16; row += kWarp / 8) {
      const auto line = *reinterpret_cast<const Line<BFloat16>*>(SwizzledAt(rows, row, piece));
      if (first_ + row >= call_.rows) continue;
      BFloat16* to = call_.c + int64_t{first_ + row} * call_.columns + column_;
      *reinterpret_cast<Line<BFloat16>*>(to + band * kMappedColumns + piece) = line;
    }
    // The other buffer is next, and this one's next turn is after that one's barrier.
  }

  const MatmulTiles& call_;
  MatmulMemory& memory_;
  const int warp_ = UniformWarpIndex();
  RingReader<kRingStages> reader_;
  int pieces_ = 0;              // of all tiles so far
  int first_ = 0, column_ = 0;  // of the warp's rows of a tile
  RowMask masks_[2] = {};
  Fragment sums_[kBands][8];
};

template <Epilogue kEpilogue, bool kTransposedB>
__global__ void SYNTRA_HOPPER_BOUNDS(kHopperThreads, 1)
    HopperMatmulKernel(const MatmulTiles __grid_constant__ call) {
  if constexpr (kHopperCode) {
    auto& memory = Shared<MatmulMemory>();
    if (ThreadIndex() == 0) {
      memory.ring.Make(1, kConsumers);
      MakeBarrier(memory.begun, kProductWarps);
      FenceAsync();
    }
    SyncThreads();
    if (UniformWarpIndex() < kConsumers) {
      GetRegisters<kComputing>();
      MatmulConsumer<kEpilogue, kTransposedB>(call, memory).Run();
    } else {
      GiveRegisters<kCopying>();
      if (ThreadIndex() == kConsumers * kWarp) CopyPieces<kTransposedB>(call, memory);
    }
  }
}

// Calls body(kernel) with the kernel for an epilogue. A mask is applied to a gradient, a product
// with B^T; a ReLU to a product with B (kernels/ops).
template <typename Body>
auto WithKernel(Epilogue epilogue, const Body& body) {
  if (epilogue == Epilogue::kMask) return body(HopperMatmulKernel<Epilogue::kMask, true>);
  if (epilogue == Epilogue::kRelu) return body(HopperMatmulKernel<Epilogue::kRelu, false>);
  return body(HopperMatmulKernel<Epilogue::kReluMask, false>);
}

int64_t TilesOf(const GemmProblem& problem) {
  return DivideUp(problem.m, int64_t{kTileRows}) * (problem.n / kTileColumns);
}

}  // namespace

bool HopperServesMatmul(const MatmulCall& matmul) {
  const GemmProblem& p = matmul.problem;
  if (p.epilogue == Epilogue::kNone || p.transpose_a ||
      p.transpose_b != (p.epilogue == Epilogue::kMask)) {
    return false;
  }
  const bool dense = p.a_stride == 0 && p.b_stride == 0 && p.c_stride == 0;
  const bool types = p.ab == DType::kBF16 && p.c == DType::kBF16 && p.alpha == 1.0f;
  // With few tiles the library's products, which may have smaller ones, are as fast.
  constexpr int64_t kLeastShare = 4;  // of the multiprocessors
  return dense && types && FitInt({p.m, p.n, p.k, TilesOf(p)}) && matmul.b_parts == 1 &&
         p.n % kTileColumns == 0 && p.k % kEight == 0 && p.k > kPiece &&
         TilesOf(p) * kLeastShare >= Multiprocessors() &&
         WithKernel(p.epilogue, [](auto kernel) { return HasHopperCode(kernel); });
}

void HopperMatmul(const KernelArguments& call, const GemmProblem& problem, const BFloat16* a,
                  const BFloat16* b, BFloat16* c, void* mask) {
  const int64_t m = problem.m, n = problem.n, k = problem.k;
  const MappedTensor matrix_b =
      problem.transpose_b ? MappedTensor{b, 1, n, k, k} : MappedTensor{b, 1, k, n, n};
  const MatmulTiles tiles{MapTiles({a, 1, m, k, k}, kTileRows),
                          MapTiles(matrix_b, problem.transpose_b ? kTileColumns : kPiece),
                          c,
                          static_cast<std::byte*>(mask),
                          static_cast<int>(m),
                          static_cast<int>(n),
                          static_cast<int>(TilesOf(problem)),
                          static_cast<int>(DivideUp(k, int64_t{kPiece}))};
  const Grid grid{std::min(TilesOf(problem), Multiprocessors()), kHopperThreads,
                  sizeof(MatmulMemory)};
  WithKernel(problem.epilogue, [&](auto kernel) { Launch(call, grid, kernel, tiles); });
}

}  // namespace syntra::gpu
