// SPDX-License-Identifier: Apache-2.0
// Panel by panel of B, which stays in a core's cache while all blocks of rows meet it. A block that
// is stored in f32 as it is goes from the tiles to C, others through a buffer.
#include "kernels/cpu/tile_gemm.h"

#include <algorithm>

#include "core/simd_targets.h"
#include "kernels/cpu/amx.h"
#include "kernels/cpu/processor.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/tile_gemm.cc"
#include "hwy/foreach_target.h"
#include "kernels/cpu/pack.h"
#include "kernels/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace syntra {
namespace HWY_NAMESPACE {

// A row of a block of C.
template <typename T>
HWY_INLINE void StoreRow(FloatVector left, FloatVector right, T* c) {
#if SYNTRA_AVX512
  if constexpr (std::is_same_v<T, BFloat16>) {
    if (kProcessor.avx512_bf16) {
      FloatVector both;
      asm("vcvtne2ps2bf16 %2, %1, %0" : "=v"(both.raw) : "v"(right.raw), "v"(left.raw));
      return Store(both, reinterpret_cast<float*>(c), Whole());
    }
  }
#endif
  Store(left, c, Whole());
  Store(right, c + hn::Lanes(FloatTag()), Whole());
}

// Stores sums, whose rows are dense, to C.
template <typename T>
void StoreRows(const float* sums, int64_t rows, const GemmProblem& p, int64_t stride, T* c) {
  const FloatTag d;
  constexpr int64_t kColumns = AmxTiles::kBlockColumns;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const FloatVector alpha = hn::Set(d, p.alpha);
  const auto finish = [&](FloatVector sum, const T* before) {
    if (p.alpha != 1.0f) sum = hn::Mul(alpha, sum);
    if (p.accumulate) sum = hn::Add(sum, Load(before, Whole()));
    return sum;
  };
  for (int64_t row = 0; row < rows; ++row, sums += kColumns, c += stride) {
    for (int64_t i = 0; i < kColumns; i += 2 * lanes) {
      const int64_t next = i + lanes;
      const FloatVector left = finish(Load(sums + i, Whole()), c + i);
      StoreRow(left, finish(Load(sums + next, Whole()), c + next), c + i);
    }
  }
}

void StoreBlock(const float* sums, int64_t rows, const GemmProblem& p, int64_t stride, void* c) {
  WithActivation(
      p.c, [&](auto type) { StoreRows(sums, rows, p, stride, static_cast<decltype(type)*>(c)); });
}

}  // namespace HWY_NAMESPACE
}  // namespace syntra
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace syntra {
namespace {

HWY_EXPORT(StoreBlock);

constexpr int64_t kBlockRows = AmxTiles::kBlockRows, kBlockColumns = AmxTiles::kBlockColumns;

PanelPacking PackingOfB(const GemmProblem& p) {
  return {.k = p.k,
          .n = p.n,
          .transposed = p.transpose_b,
          .stored = p.ab,
          .packed = p.ab,
          .stride = p.b_stride,
          .fill = true};
}

PanelPacking PackingOfA(const GemmProblem& p) {
  return {.k = p.k,
          .n = p.m,
          .transposed = false,
          .stored = p.ab,
          .packed = p.ab,
          .stride = p.a_stride,
          .fill = true,
          .layout = PanelLayout::kSquares};
}

}  // namespace

bool TileGemm::Covers(const GemmProblem& p) {
  if (p.ab != DType::kBF16 || p.epilogue != Epilogue::kNone || !CanPack(PackingOfB(p)) ||
      !AmxMultipliesBFloat16()) {
    return false;
  }
  return p.transpose_a ? CanPack(PackingOfA(p)) : p.k % (kBlockWords * RowsPerWord(p.ab)) == 0;
}

int64_t TileGemm::words() const { return PackedWords(PackingOfB(problem_)); }

size_t TileGemm::packed_bytes() const { return PackedBytes(PackingOfB(problem_)); }

void TileGemm::Pack(const void* b, std::byte* packed) const {
  syntra::Pack(PackingOfB(problem_), b, packed);
}

size_t TileGemm::workspace_bytes() const {
  return problem_.transpose_a ? PackedBytes(PackingOfA(problem_)) : 0;
}

void TileGemm::Run(const void* a, const std::byte* packed, void* c, std::byte* workspace) const {
  const GemmProblem& p = problem_;
  const int64_t panel_bytes = words() * kPanelRowBytes;
  const int64_t a_row = 2 * (p.a_stride > 0 ? p.a_stride : p.k);
  const int64_t c_stride = p.c_stride > 0 ? p.c_stride : p.n;
  if (p.transpose_a) syntra::Pack(PackingOfA(p), a, workspace);
  const auto rows_at = [&](int64_t row) -> AmxTiles::Rows {
    if (p.transpose_a) {
      return AmxTiles::Rows::OfPanel(workspace + row / kPanelColumns * panel_bytes,
                                     row % kPanelColumns);
    }
    return {static_cast<const std::byte*>(a) + row * a_row, a_row, kBlockWords * a_row,
            kBlockWords * kWordBytes};
  };
  const bool as_it_is = p.c == DType::kF32 && p.alpha == 1.0f;
  const auto element = static_cast<int64_t>(SizeOf(p.c));
  HWY_ALIGN float sums[kBlockRows * kBlockColumns];
  AmxTiles tiles;
  const auto multiply = [&](int64_t row, int64_t column) {
    const std::byte* panel = packed + column / kPanelColumns * panel_bytes;
    const std::byte* b = panel + column % kPanelColumns * kWordBytes;
    auto* to = static_cast<std::byte*>(c) + (row * c_stride + column) * element;
    if (as_it_is) {
      tiles.Multiply(rows_at(row), b, words(), reinterpret_cast<float*>(to), c_stride,
                     p.accumulate);
      return;
    }
    tiles.Multiply(rows_at(row), b, words(), sums, kBlockColumns, false);
    HWY_DYNAMIC_DISPATCH(StoreBlock)(sums, std::min(kBlockRows, p.m - row), p, c_stride, to);
  };
  const int64_t whole = p.m / kBlockRows * kBlockRows;
  for (int64_t panel = 0; panel < p.n; panel += kPanelColumns) {
    for (int64_t row = 0; row < whole; row += kBlockRows) {
      multiply(row, panel);
      multiply(row, panel + kBlockColumns);
    }
  }
  if (whole == p.m) return;
  tiles.Configure(p.m - whole);
  for (int64_t column = 0; column < p.n; column += kBlockColumns) multiply(whole, column);
}

}  // namespace syntra
#endif
