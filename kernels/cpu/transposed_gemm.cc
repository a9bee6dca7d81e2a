// SPDX-License-Identifier: Apache-2.0
// Both operands are packed into panels of 64 columns, in which a row follows the other (pack.h). A
// panel of the wider one stays in a core's cache, and meets all panels of the other. In registers
// are 6 x 64 sums: for each row, 4 vectors of B are multiplied with 6 elements of A. Blocking of
// this kind: Goto and van de Geijn, "Anatomy of High-Performance Matrix Multiplication" (2008).
#include "kernels/cpu/transposed_gemm.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "core/buffer.h"
#include "core/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/transposed_gemm.cc"
#include "hwy/foreach_target.h"
#include "kernels/cpu/pack.h"
#include "kernels/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace syntra {
namespace HWY_NAMESPACE {

#if SYNTRA_AVX512

bool HasProduct(DType type) { return type == DType::kF32 || (kHasAvx512Bf16 && !kHasAmxBf16); }

constexpr int kVectors = kPanelColumns / 16, kTileRows = 6;

// Adds products of f32, or of pairs of bf16 (for which Highway 1.0 has no instruction).
template <bool kPairs>
HWY_INLINE FloatVector MultiplyAdd(FloatVector a, FloatVector b, FloatVector sum) {
  if constexpr (!kPairs) return hn::MulAdd(a, b, sum);
  asm("vdpbf16ps %2, %1, %0" : "+v"(sum.raw) : "v"(a.raw), "v"(b.raw));
  return sum;
}

// kRows rows and 64 columns of C. Panels have `words` rows of 64 words.
template <bool kPairs, int kRows>
void Tile(const float* a, const float* b, int64_t words, float* c, int64_t stride,
          bool accumulate) {
  const FloatTag d;
  FloatVector sums[kRows][kVectors];
#pragma GCC unroll 8
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 4
    for (int j = 0; j < kVectors; ++j) {
      sums[i][j] = hn::Zero(d);
      __builtin_prefetch(c + i * stride + 16 * j, 1);
    }
  }
  for (int64_t word = 0; word < words; ++word, a += kPanelColumns, b += kPanelColumns) {
    FloatVector row[kVectors];
#pragma GCC unroll 4
    for (int j = 0; j < kVectors; ++j) row[j] = hn::LoadU(d, b + 16 * j);
#pragma GCC unroll 8
    for (int i = 0; i < kRows; ++i) {
      const FloatVector factor = hn::Set(d, a[i]);
#pragma GCC unroll 4
      for (int j = 0; j < kVectors; ++j) {
        sums[i][j] = MultiplyAdd<kPairs>(factor, row[j], sums[i][j]);
      }
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 4
    for (int j = 0; j < kVectors; ++j) {
      StoreResult(sums[i][j], c + i * stride + 16 * j, Whole(), accumulate);
    }
  }
}

template <bool kPairs>
void SquareOf(const float* a, const float* b, int64_t words, float* c, int64_t stride,
              bool accumulate) {
  constexpr int kRest = kPanelColumns % kTileRows;
  int row = 0;
  for (; row + kTileRows <= kPanelColumns; row += kTileRows) {
    Tile<kPairs, kTileRows>(a + row, b, words, c + row * stride, stride, accumulate);
  }
  Tile<kPairs, kRest>(a + row, b, words, c + row * stride, stride, accumulate);
}

// 64 rows and columns of C.
void Square(DType type, const void* a, const void* b, int64_t words, float* c, int64_t stride,
            bool accumulate) {
  const auto *left = static_cast<const float*>(a), *right = static_cast<const float*>(b);
  if (type == DType::kBF16) {
    SquareOf<true>(left, right, words, c, stride, accumulate);
  } else {
    SquareOf<false>(left, right, words, c, stride, accumulate);
  }
}

#else

bool HasProduct(DType) { return false; }

void Square(DType, const void*, const void*, int64_t, float*, int64_t, bool) {
  Fail(ExitCode::kInternal, "no transposed product for these vectors");
}

#endif

}  // namespace HWY_NAMESPACE
}  // namespace syntra
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace syntra {
namespace {

HWY_EXPORT(HasProduct);
HWY_EXPORT(Square);

// Rows of words: of a panel that is multiplied at once, which takes 128 KiB of a core's cache, and
// of the narrower operand that is packed at once.
constexpr int64_t kMostWords = 512, kSlabWords = 4096;

struct Range {
  int64_t begin, count;
};

// Splits `count` rows into ranges of at most `most`, a multiple of kBlockWords, that are about
// equal.
template <typename Body>
void ForEachRange(int64_t count, int64_t most, const Body& body) {
  const int64_t ranges = (count + most - 1) / most;
  const auto length = static_cast<int64_t>(AlignUp((count + ranges - 1) / ranges, kBlockWords));
  for (int64_t begin = 0; begin < count; begin += length) {
    body(Range{begin, std::min(length, count - begin)});
  }
}

// 64 columns of an operand.
struct Panel {
  size_t part;
  int64_t column;
};

Panel PanelOf(const TransposedGemm::Operand& operand, int64_t i) {
  Panel panel{0, i * kPanelColumns};
  while (panel.column >= operand.parts[panel.part]) panel.column -= operand.parts[panel.part++];
  return panel;
}

// An operand of a run.
struct Source {
  const TransposedGemm::Operand& operand;
  std::span<const void* const> parts;
  DType type;  // of the product

  void Pack(Range words, Panel first, int64_t columns, std::byte* to) const {
    const int64_t skipped = words.begin * RowsPerWord(type) * operand.stride + first.column;
    syntra::Pack(
        {.k = words.count * RowsPerWord(type),
         .n = columns,
         .transposed = false,
         .stored = operand.stored,
         .packed = type,
         .stride = operand.stride},
        static_cast<const std::byte*>(parts[first.part]) + skipped * SizeOf(operand.stored), to);
  }
  void PackAll(Range words, std::byte* to) const {
    for (size_t part = 0; part < parts.size(); ++part) {
      Pack(words, {part, 0}, operand.parts[part], to);
      to += operand.parts[part] / kPanelColumns * words.count * kPanelRowBytes;
    }
  }
};

}  // namespace

int64_t TransposedGemm::Operand::panels() const {
  return std::accumulate(parts.begin(), parts.end(), int64_t{0}) / kPanelColumns;
}

bool TransposedGemm::Covers(const GemmProblem& p, const Operand& a, const Operand& b) {
  const auto packs = [&](const Operand& operand) {
    return std::ranges::all_of(operand.parts, [&](int64_t columns) {
      return CanPack({p.k, columns, false, operand.stored, p.ab});
    });
  };
  return p.transpose_a && !p.transpose_b && p.c == DType::kF32 && p.alpha == 1.0f &&
         p.epilogue == Epilogue::kNone && p.c_stride == 0 && packs(a) && packs(b) &&
         HWY_DYNAMIC_DISPATCH(HasProduct)(p.ab);
}

TransposedGemm::TransposedGemm(const GemmProblem& problem, Operand a, Operand b)
    : type_(problem.ab),
      accumulate_(problem.accumulate),
      words_(problem.k / RowsPerWord(type_)),
      a_(std::move(a)),
      b_(std::move(b)) {}

size_t TransposedGemm::slab_bytes() const {
  return std::min(a_.panels(), b_.panels()) * std::min(words_, kSlabWords) * kPanelRowBytes;
}
size_t TransposedGemm::block_bytes() const { return std::min(words_, kMostWords) * kPanelRowBytes; }
size_t TransposedGemm::workspace_bytes() const {
  return slab_bytes() + ThreadCount() * block_bytes();
}

void TransposedGemm::Run(const void* a, std::span<const void* const> b, std::span<void* const> c,
                         std::byte* workspace) const {
  const Source left{a_, {&a, 1}, type_}, right{b_, b, type_};
  const bool wide_b = b_.panels() >= a_.panels();
  const Source &wide = wide_b ? right : left, &narrow = wide_b ? left : right;
  const int64_t wide_panels = wide.operand.panels(), narrow_panels = narrow.operand.panels();
  // Where there are few panels for many threads, several share one.
  const int64_t shares = std::clamp<int64_t>(4 * ThreadCount() / wide_panels, 1, narrow_panels);
  ForEachRange(words_, kSlabWords, [&](Range slab) {
    narrow.PackAll(slab, workspace);
    ParallelTasks(wide_panels * shares, [&](int64_t task) {
      const Panel panel = PanelOf(wide.operand, task / shares);
      const int64_t share = task % shares;
      std::byte* own = workspace + slab_bytes() + ThreadIndex() * block_bytes();
      ForEachRange(slab.count, kMostWords, [&](Range block) {
        const int64_t word = slab.begin + block.begin;
        wide.Pack({word, block.count}, panel, kPanelColumns, own);
        for (int64_t i = narrow_panels * share / shares; i < narrow_panels * (share + 1) / shares;
             ++i) {
          const Panel other = PanelOf(narrow.operand, i);
          const std::byte* met = workspace + (i * slab.count + block.begin) * kPanelRowBytes;
          const Panel &row = wide_b ? other : panel, &column = wide_b ? panel : other;
          const int64_t stride = b_.parts[column.part];
          HWY_DYNAMIC_DISPATCH(Square)
          (type_, wide_b ? met : own, wide_b ? own : met, block.count,
           static_cast<float*>(c[column.part]) + row.column * stride + column.column, stride,
           accumulate_ || word > 0);
        }
      });
    });
  });
}

}  // namespace syntra
#endif
