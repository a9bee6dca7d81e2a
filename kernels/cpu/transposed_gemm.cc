// SPDX-License-Identifier: Apache-2.0
// Both operands are packed into panels of 64 columns (pack.h). As many panels of the narrower one
// as a core's cache holds meet one panel after another of the wider one. In registers are 6 x 64
// sums: for each row, 4 vectors of B are multiplied with 6 elements of A. Blocking of this kind:
// Goto and van de Geijn, "Anatomy of High-Performance Matrix Multiplication" (2008). Processors
// with AMX multiply bf16 by its tiles instead.
#include "kernels/cpu/transposed_gemm.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include "base/divide.h"
#include "core/buffer.h"
#include "core/thread.h"
#include "kernels/cpu/amx.h"
#include "kernels/cpu/pack.h"
#include "kernels/cpu/panel_gemm.h"
#include "kernels/cpu/processor.h"

namespace syntra {
namespace {

// The rows of words of a panel, and the panels of the narrower operand, that are multiplied at
// once: 1 MiB.
constexpr int64_t kMostWords = 512, kMostPanels = 8;

struct Range {
  int64_t begin, count;
};

// Splits `count` rows into ranges of at most `most`, a multiple of kBlockWords, that are about
// equal.
template <typename Body>
void ForEachRange(int64_t count, int64_t most, const Body& body) {
  const int64_t ranges = DivideUp(count, most);
  const auto length = static_cast<int64_t>(AlignUp(DivideUp(count, ranges), kBlockWords));
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

bool UsesTiles(DType type) { return type == DType::kBF16 && AmxMultipliesBFloat16(); }

// An operand of a run.
struct Source {
  const TransposedGemm::Operand& operand;
  std::span<const void* const> parts;
  DType type;  // of the product
  PanelLayout layout;
  bool fill;

  // Rows of `words` of `panels`, one panel after the other.
  void Pack(Range words, Range panels, std::byte* to) const {
    for (int64_t i = panels.begin, end = panels.begin + panels.count; i < end;) {
      const Panel first = PanelOf(operand, i);
      const int64_t columns =
          std::min(operand.parts[first.part] - first.column, (end - i) * kPanelColumns);
      const int64_t skipped = words.begin * RowsPerWord(type) * operand.stride + first.column;
      const PanelPacking packing{.k = words.count * RowsPerWord(type),
                                 .n = columns,
                                 .transposed = false,
                                 .stored = operand.stored,
                                 .packed = type,
                                 .stride = operand.stride,
                                 .fill = fill,
                                 .layout = layout};
      syntra::Pack(
          packing,
          static_cast<const std::byte*>(parts[first.part]) + skipped * SizeOf(operand.stored), to);
      to += PackedBytes(packing);
      i += columns / kPanelColumns;
    }
  }
};

// 64 rows and columns of C by AMX. A is a panel in squares, B one in rows.
void SquareOfTiles(AmxTiles& tiles, const std::byte* a, const std::byte* b, int64_t words, float* c,
                   int64_t stride) {
  for (int64_t row = 0; row < kPanelColumns; row += AmxTiles::kBlockRows) {
    for (int64_t column = 0; column < kPanelColumns; column += AmxTiles::kBlockColumns) {
      tiles.Multiply(
          AmxTiles::Rows::OfPanel(a, row), b + column * kWordBytes, words,
          {reinterpret_cast<std::byte*>(c + row * stride + column), stride * kWordBytes});
    }
  }
}

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
         (UsesTiles(p.ab) || MultipliesPanels(p.ab));
}

TransposedGemm::TransposedGemm(const GemmProblem& problem, Operand a, Operand b)
    : type_(problem.ab),
      accumulate_(problem.accumulate),
      tiles_(UsesTiles(problem.ab)),
      words_(problem.k / RowsPerWord(type_)),
      a_(std::move(a)),
      b_(std::move(b)) {}

int64_t TransposedGemm::packed_words(int64_t words) const {
  return PackedWords({.k = words * RowsPerWord(type_), .packed = type_, .fill = tiles_});
}
size_t TransposedGemm::panel_bytes() const {
  return packed_words(std::min(words_, kMostWords)) * kPanelRowBytes;
}
size_t TransposedGemm::resident_bytes() const {
  return std::min({a_.panels(), b_.panels(), kMostPanels}) * panel_bytes();
}
size_t TransposedGemm::workspace_bytes() const {
  return resident_bytes() + ThreadCount() * panel_bytes();
}

void TransposedGemm::Run(const void* a, std::span<const void* const> b, std::span<void* const> c,
                         std::byte* workspace) const {
  const PanelLayout left_layout = tiles_ ? PanelLayout::kSquares : PanelLayout::kStrips;
  const Source left{a_, {&a, 1}, type_, left_layout, tiles_},
      right{b_, b, type_, PanelLayout::kRows, tiles_};
  const bool wide_b = b_.panels() >= a_.panels();
  const Source &wide = wide_b ? right : left, &narrow = wide_b ? left : right;
  const int64_t wide_panels = wide.operand.panels(), narrow_panels = narrow.operand.panels();
  const auto accumulates = [&](Range words) { return accumulate_ || words.begin > 0; };
  // A panel of each operand makes a square of C.
  const auto multiply = [&](std::optional<AmxTiles>& tiles, int64_t row, const std::byte* rows,
                            int64_t column, const std::byte* columns, Range words) {
    const Panel right_panel = PanelOf(b_, column);
    const int64_t stride = b_.parts[right_panel.part];
    float* square = static_cast<float*>(c[right_panel.part]) + row * kPanelColumns * stride +
                    right_panel.column;
    const int64_t packed = packed_words(words.count);
    if (tiles) {
      SquareOfTiles(*tiles, rows, columns, packed, square, stride);
    } else {
      MultiplyPanel({.m = kPanelColumns,
                     .k = packed * RowsPerWord(type_),
                     .transpose_a = true,
                     .c_stride = stride,
                     .ab = type_,
                     .accumulate = accumulates(words)},
                    rows, columns, square);
    }
  };
  ForEachRange(words_, kMostWords, [&](Range words) {
    for (int64_t first = 0; first < narrow_panels; first += kMostPanels) {
      const int64_t resident = std::min(kMostPanels, narrow_panels - first);
      const int64_t packed = packed_words(words.count);
      narrow.Pack(words, {first, resident}, workspace);
      // Where there are few panels for many threads, several share one.
      const int64_t shares = std::clamp<int64_t>(4 * ThreadCount() / wide_panels, 1, resident);
      ParallelTasks(wide_panels * shares, [&](int64_t task) {
        const int64_t i = task / shares, share = task % shares;
        std::byte* own = workspace + resident_bytes() + ThreadIndex() * panel_bytes();
        wide.Pack(words, {i, 1}, own);
        std::optional<AmxTiles> tiles;
        if (tiles_) tiles.emplace(TileResult{.accumulate = accumulates(words)});
        for (int64_t j = resident * share / shares; j < resident * (share + 1) / shares; ++j) {
          const std::byte* met = workspace + j * packed * kPanelRowBytes;
          if (wide_b) {
            multiply(tiles, first + j, met, i, own, words);
          } else {
            multiply(tiles, i, own, first + j, met, words);
          }
        }
      });
    }
  });
}

}  // namespace syntra
