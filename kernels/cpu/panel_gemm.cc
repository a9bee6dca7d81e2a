// SPDX-License-Identifier: Apache-2.0
// In registers are up to 6 x 64 sums. For each word of k, 4 vectors of a panel of B are multiplied
// with 6 words of A and added to them. A word is an f32, or two bf16 that follow each other in k.
#include "kernels/cpu/panel_gemm.h"

#include <algorithm>

#include "base/error.h"
#include "core/buffer.h"
#include "core/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/panel_gemm.cc"
#include "hwy/foreach_target.h"
#include "kernels/cpu/pack.h"
#include "kernels/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace syntra {
namespace HWY_NAMESPACE {

#if SYNTRA_AVX512

bool HasProduct(DType type) { return type == DType::kF32 || kProcessor.avx512_bf16; }

// Adds products of f32, or of pairs of bf16 (for which Highway 1.0 has no instruction).
template <bool kPairs>
HWY_INLINE FloatVector MultiplyAdd(FloatVector a, FloatVector b, FloatVector sum) {
  if constexpr (!kPairs) return hn::MulAdd(a, b, sum);
  asm("vdpbf16ps %2, %1, %0" : "+v"(sum.raw) : "v"(a.raw), "v"(b.raw));
  return sum;
}

// Where the words of kRows rows of A are: in a strip (PanelLayout::kStrips) of kRows columns, or in
// the rows themselves.
template <int kRows>
struct StripWords {
  const float* strip;

  HWY_INLINE float operator()(int64_t word, int row) const { return strip[word * kRows + row]; }
};

struct RowWords {
  const std::byte* rows;
  int64_t stride;  // bytes from one row to the next

  HWY_INLINE float operator()(int64_t word, int row) const {
    float value;
    std::memcpy(&value, rows + row * stride + word * kWordBytes, sizeof(value));
    return value;
  }
};

// Where sums go.
template <typename T>
struct TileSums {
  T* c;
  int64_t stride;  // elements from one row to the next
  float alpha;
  bool accumulate;
};

// kRows rows and 64 columns of C = alpha A B (+ C), where B is a panel of `words` rows.
template <bool kPairs, int kRows, typename Words, typename T>
void RegisterTile(Words a, const float* b, int64_t words, const TileSums<T>& result) {
  constexpr int kVectors = kPanelColumns / 16;
  const FloatTag d;
  FloatVector sums[kRows][kVectors];
#pragma GCC unroll 8
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 4
    for (int j = 0; j < kVectors; ++j) {
      sums[i][j] = hn::Zero(d);
      __builtin_prefetch(result.c + i * result.stride + 16 * j, 1);
    }
  }
  for (int64_t word = 0; word < words; ++word, b += kPanelColumns) {
    FloatVector row[kVectors];
#pragma GCC unroll 4
    for (int j = 0; j < kVectors; ++j) row[j] = hn::LoadU(d, b + 16 * j);
#pragma GCC unroll 8
    for (int i = 0; i < kRows; ++i) {
      const FloatVector factor = hn::Set(d, a(word, i));
#pragma GCC unroll 4
      for (int j = 0; j < kVectors; ++j) {
        sums[i][j] = MultiplyAdd<kPairs>(factor, row[j], sums[i][j]);
      }
    }
  }
  const FloatVector alpha = hn::Set(d, result.alpha);
#pragma GCC unroll 8
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 4
    for (int j = 0; j < kVectors; ++j) {
      StoreResult(hn::Mul(alpha, sums[i][j]), result.c + i * result.stride + 16 * j, Whole(),
                  result.accumulate);
    }
  }
}

// 64 rows and columns of C. `strips` is a panel of A in strips.
template <bool kPairs, typename T>
void Square(const float* strips, const float* b, int64_t words, TileSums<T> sums) {
  constexpr int kStrip = kStripColumns, kRest = kPanelColumns % kStrip;
  for (int row = 0; row + kStrip <= kPanelColumns; row += kStrip) {
    RegisterTile<kPairs, kStrip>(StripWords<kStrip>{strips}, b, words, sums);
    strips += kStrip * words;
    sums.c += kStrip * sums.stride;
  }
  RegisterTile<kPairs, kRest>(StripWords<kRest>{strips}, b, words, sums);
}

// `count` rows of C, at most as many as a tile has.
template <bool kPairs, int kRows = kStripColumns, typename T>
void TileOfRows(int64_t count, const RowWords& a, const float* b, int64_t words,
                const TileSums<T>& sums) {
  if (count == kRows) return RegisterTile<kPairs, kRows>(a, b, words, sums);
  if constexpr (kRows > 1) TileOfRows<kPairs, kRows - 1>(count, a, b, words, sums);
}

template <bool kPairs, typename T>
void MultiplyAs(const GemmProblem& p, const void* a, const void* panel, T* c) {
  const auto* b = static_cast<const float*>(panel);
  const int64_t words = p.k / RowsPerWord(p.ab);
  const auto sums_at = [&](int64_t row) {
    return TileSums<T>{c + row * p.c_row(), p.c_row(), p.alpha, p.accumulate};
  };
  if (p.transpose_a) {
    const auto* strips = static_cast<const float*>(a);
    for (int64_t row = 0; row < p.m; row += kPanelColumns) {
      Square<kPairs>(strips + row * words, b, words, sums_at(row));
    }
    return;
  }
  const int64_t stride = p.a_row() * static_cast<int64_t>(SizeOf(p.ab));
  for (int64_t row = 0; row < p.m; row += kStripColumns) {
    const RowWords rows{static_cast<const std::byte*>(a) + row * stride, stride};
    TileOfRows<kPairs>(std::min(kStripColumns, p.m - row), rows, b, words, sums_at(row));
  }
}

void Multiply(const GemmProblem& p, const void* a, const void* panel, void* c) {
  if (p.ab == DType::kF32) return MultiplyAs<false>(p, a, panel, static_cast<float*>(c));
  WithActivation(
      p.c, [&](auto type) { MultiplyAs<true>(p, a, panel, static_cast<decltype(type)*>(c)); });
}

#else

bool HasProduct(DType) { return false; }

void Multiply(const GemmProblem&, const void*, const void*, void*) {
  Fail(ExitCode::kInternal, "no product of panels for these vectors");
}

#endif

}  // namespace HWY_NAMESPACE
}  // namespace syntra
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace syntra {

HWY_EXPORT(HasProduct);
HWY_EXPORT(Multiply);

bool MultipliesPanels(DType type) { return HWY_DYNAMIC_DISPATCH(HasProduct)(type); }

void MultiplyPanel(const GemmProblem& problem, const void* a, const std::byte* panel, void* c) {
  HWY_DYNAMIC_DISPATCH(Multiply)(problem, a, panel, c);
}

namespace {

// With fewer columns, it takes longer to pack a transposed A of f32 than the library loses on it.
constexpr int64_t kMostRowsPerColumn = 4;
// Of a panel at once, so that it stays in the second-level cache: 128 KiB.
constexpr int64_t kMostWords = 512;

// `words` words of k of a panel of B, or of a transposed A.
PanelPacking PackingOfB(const GemmProblem& p, int64_t words) {
  return {.k = words * RowsPerWord(p.ab),
          .n = kPanelColumns,
          .transposed = p.transpose_b,
          .stored = p.ab,
          .packed = p.ab,
          .stride = p.b_row()};
}

PanelPacking PackingOfA(const GemmProblem& p, int64_t words) {
  return {.k = words * RowsPerWord(p.ab),
          .n = p.m,
          .transposed = false,
          .stored = p.ab,
          .packed = p.ab,
          .stride = p.a_row(),
          .layout = PanelLayout::kStrips};
}

}  // namespace

bool PanelGemm::Covers(const GemmProblem& p) {
  const int64_t words = p.k / RowsPerWord(p.ab);
  return p.epilogue == Epilogue::kNone && p.n % kPanelColumns == 0 &&
         p.k % RowsPerWord(p.ab) == 0 && CanPack(PackingOfB(p, words)) &&
         (!p.transpose_a || CanPack(PackingOfA(p, words))) &&
         (!p.transpose_a || p.ab == DType::kBF16 || p.m <= kMostRowsPerColumn * p.n) &&
         (words <= kMostWords || p.c == DType::kF32) && MultipliesPanels(p.ab);
}

PanelGemm::PanelGemm(const GemmProblem& problem)
    : problem_(problem), words_(problem.k / RowsPerWord(problem.ab)) {}

size_t PanelGemm::workspace_bytes() const {
  const int64_t words = std::min(words_, kMostWords);
  return PackedBytes(PackingOfB(problem_, words)) +
         (problem_.transpose_a ? PackedBytes(PackingOfA(problem_, words)) : 0);
}

void PanelGemm::Run(const void* a, const void* b, void* c, std::byte* workspace) const {
  for (int64_t first = 0; first < words_; first += kMostWords) {
    RunWords(first, std::min(kMostWords, words_ - first), a, b, c, workspace);
  }
}

void PanelGemm::RunWords(int64_t first, int64_t words, const void* a, const void* b, void* c,
                         std::byte* workspace) const {
  const auto size = static_cast<int64_t>(SizeOf(problem_.ab));
  const int64_t k = first * RowsPerWord(problem_.ab), a_row = problem_.a_row(),
                b_row = problem_.b_row();
  GemmProblem part = problem_;
  part.k = words * RowsPerWord(problem_.ab);
  part.a_stride = a_row;
  part.accumulate = problem_.accumulate || first > 0;
  const PanelPacking packing = PackingOfB(problem_, words);
  const auto* left = static_cast<const std::byte*>(a) + k * (part.transpose_a ? a_row : 1) * size;
  if (part.transpose_a) {
    std::byte* strips = workspace + PackedBytes(packing);
    Pack(PackingOfA(problem_, words), left, strips);
    left = strips;
  }
  for (int64_t column = 0; column < part.n; column += kPanelColumns) {
    const int64_t from = part.transpose_b ? column * b_row + k : k * b_row + column;
    Pack(packing, static_cast<const std::byte*>(b) + from * size, workspace);
    MultiplyPanel(part, left, workspace, static_cast<std::byte*>(c) + column * SizeOf(part.c));
  }
}

}  // namespace syntra
#endif
