// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/panel_gemm.h"

#include <algorithm>

#include "base/error.h"
#include "core/buffer.h"
#include "core/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/panel_gemm.cc"
#include "hwy/foreach_target.h"
#include "kernels/cpu/register_tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace syntra {
namespace HWY_NAMESPACE {

bool MultipliesPanels(DType type) { return HasRegisterTiles(type); }

#if SYNTRA_AVX512

// The rows of C beside a panel of B, `words` of k.
template <bool kPairs, typename T>
void MultiplyAs(const GemmProblem& p, int64_t words, bool accumulate, const void* a,
                const void* panel, T* c) {
  const auto* b = static_cast<const float*>(panel);
  const int64_t c_stride = p.c_stride > 0 ? p.c_stride : p.n;
  const auto sums_at = [&](int64_t row) {
    return TileSums<T>{c + row * c_stride, c_stride, p.alpha, accumulate};
  };
  constexpr int kMost = kStripColumns;
  if (p.transpose_a) {
    constexpr int kRest = kPanelColumns % kMost;
    const auto* strip = static_cast<const float*>(a);
    for (int64_t row = 0; row < p.m;) {
      if (row % kPanelColumns + kMost <= kPanelColumns) {
        RegisterTile<kPairs, kMost>(StripWords<kMost>{strip}, b, words, sums_at(row));
        strip += kMost * words;
        row += kMost;
      } else {
        RegisterTile<kPairs, kRest>(StripWords<kRest>{strip}, b, words, sums_at(row));
        strip += kRest * words;
        row += kRest;
      }
    }
    return;
  }
  const int64_t stride = (p.a_stride > 0 ? p.a_stride : p.k) * static_cast<int64_t>(SizeOf(p.ab));
  const auto tile = [&](auto rows, int64_t row) {
    RegisterTile<kPairs, rows>(RowWords{static_cast<const std::byte*>(a) + row * stride, stride}, b,
                               words, sums_at(row));
  };
  int64_t row = 0;
  for (; row + kMost <= p.m; row += kMost) tile(std::integral_constant<int, kMost>(), row);
  switch (p.m - row) {
    case 1:
      return tile(std::integral_constant<int, 1>(), row);
    case 2:
      return tile(std::integral_constant<int, 2>(), row);
    case 3:
      return tile(std::integral_constant<int, 3>(), row);
    case 4:
      return tile(std::integral_constant<int, 4>(), row);
    case 5:
      return tile(std::integral_constant<int, 5>(), row);
    default:
      return;
  }
}

void MultiplyPanel(const GemmProblem& p, int64_t words, bool accumulate, const void* a,
                   const void* panel, void* c) {
  if (p.ab == DType::kF32) {
    return MultiplyAs<false>(p, words, accumulate, a, panel, static_cast<float*>(c));
  }
  WithActivation(p.c, [&](auto type) {
    MultiplyAs<true>(p, words, accumulate, a, panel, static_cast<decltype(type)*>(c));
  });
}

#else

void MultiplyPanel(const GemmProblem&, int64_t, bool, const void*, const void*, void*) {
  Fail(ExitCode::kInternal, "no product of panels for these vectors");
}

#endif

}  // namespace HWY_NAMESPACE
}  // namespace syntra
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace syntra {
namespace {

HWY_EXPORT(MultipliesPanels);
HWY_EXPORT(MultiplyPanel);

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
          .stride = p.b_stride > 0  ? p.b_stride
                    : p.transpose_b ? p.k
                                    : p.n};
}

PanelPacking PackingOfA(const GemmProblem& p, int64_t words) {
  return {.k = words * RowsPerWord(p.ab),
          .n = p.m,
          .transposed = false,
          .stored = p.ab,
          .packed = p.ab,
          .stride = p.a_stride > 0 ? p.a_stride : p.m,
          .layout = PanelLayout::kStrips};
}

}  // namespace

bool PanelGemm::Covers(const GemmProblem& p) {
  const int64_t words = p.k / RowsPerWord(p.ab);
  return p.epilogue == Epilogue::kNone && p.n % kPanelColumns == 0 &&
         p.k % RowsPerWord(p.ab) == 0 && CanPack(PackingOfB(p, words)) &&
         (!p.transpose_a || CanPack(PackingOfA(p, words))) &&
         (!p.transpose_a || p.ab == DType::kBF16 || p.m <= kMostRowsPerColumn * p.n) &&
         (words <= kMostWords || p.c == DType::kF32) &&
         HWY_DYNAMIC_DISPATCH(MultipliesPanels)(p.ab);
}

PanelGemm::PanelGemm(const GemmProblem& problem)
    : problem_(problem), words_(problem.k / RowsPerWord(problem.ab)) {}

size_t PanelGemm::workspace_bytes() const {
  const int64_t words = std::min(words_, kMostWords);
  return PackedBytes(PackingOfB(problem_, words)) +
         (problem_.transpose_a ? PackedBytes(PackingOfA(problem_, words)) : 0);
}

void PanelGemm::Run(const void* a, const void* b, void* c, std::byte* workspace) const {
  const GemmProblem& p = problem_;
  const auto size = static_cast<int64_t>(SizeOf(p.ab));
  for (int64_t first = 0; first < words_; first += kMostWords) {
    const int64_t words = std::min(kMostWords, words_ - first);
    const int64_t k = first * RowsPerWord(p.ab);
    const PanelPacking packing_b = PackingOfB(p, words), packing_a = PackingOfA(p, words);
    std::byte* strips = workspace + PackedBytes(packing_b);
    const auto* left = static_cast<const std::byte*>(a);
    if (p.transpose_a) {
      Pack(packing_a, left + k * packing_a.stride * size, strips);
      left = strips;
    } else {
      left += k * size;
    }
    for (int64_t column = 0; column < p.n; column += kPanelColumns) {
      const int64_t from =
          p.transpose_b ? column * packing_b.stride + k : k * packing_b.stride + column;
      Pack(packing_b, static_cast<const std::byte*>(b) + from * size, workspace);
      HWY_DYNAMIC_DISPATCH(MultiplyPanel)
      (p, words, p.accumulate || first > 0, left, workspace,
       static_cast<std::byte*>(c) + column * SizeOf(p.c));
    }
  }
}

}  // namespace syntra
#endif
