// SPDX-License-Identifier: Apache-2.0
// C is computed in parts as wide as the columns of B that stay in a core's second-level cache. A
// part is computed 32 rows at a time: these rows of A stay in the first-level cache while they are
// multiplied with all the columns, and the next 32 are fetched meanwhile. Neighbouring parts have
// the same columns.
#include "kernels/cpu/tile_gemm.h"

#include <algorithm>

#include "base/divide.h"
#include "core/thread.h"
#include "kernels/bit_mask.h"
#include "kernels/cpu/amx.h"
#include "kernels/cpu/pack.h"
#include "kernels/cpu/processor.h"

namespace syntra {
namespace {

constexpr int64_t kBlockRows = AmxTiles::kBlockRows, kBlockColumns = AmxTiles::kBlockColumns;
// Of B at once: half of the second-level cache of the processors that have AMX.
constexpr int64_t kCachedBytes = 1 << 20;

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
  if (p.ab != DType::kBF16 || !CanPack(PackingOfB(p)) || !AmxMultipliesBFloat16()) return false;
  if (p.epilogue != Epilogue::kNone && p.n % kMaskRowBits != 0) return false;
  return p.transpose_a ? CanPack(PackingOfA(p)) : p.k % (kBlockWords * RowsPerWord(p.ab)) == 0;
}

bool TileGemm::CoversShared(const GemmProblem& p) {
  return Covers(p) && PackedWords(PackingOfB(p)) * kPanelRowBytes <= kCachedBytes;
}

// With several threads the parts are small enough that none waits long for another.
TileGemm::TileGemm(const GemmProblem& problem, int threads)
    : problem_(problem),
      words_(PackedWords(PackingOfB(problem))),
      is_shared_(threads > 1),
      part_rows_(problem.m) {
  constexpr int64_t kMostRows = 128, kPartsOfThread = 8;
  const auto halve = [](int64_t& count, int64_t unit) {
    count = static_cast<int64_t>(AlignUp(count / 2, unit));
  };
  part_columns_ =
      std::clamp(kCachedBytes / (words_ * kPanelRowBytes), int64_t{1}, problem.n / kPanelColumns) *
      kPanelColumns;
  if (!is_shared_) return;
  part_rows_ = std::min(kMostRows, static_cast<int64_t>(AlignUp(problem.m, kBlockRows)));
  const auto too_few = [&] {
    return DivideUp(problem.m, part_rows_) * DivideUp(problem.n, part_columns_) <
           threads * kPartsOfThread;
  };
  while (part_rows_ > kBlockRows && too_few()) halve(part_rows_, kBlockRows);
  while (part_columns_ > kPanelColumns && too_few()) halve(part_columns_, kPanelColumns);
}

size_t TileGemm::packed_bytes() const { return PackedBytes(PackingOfB(problem_)); }

void TileGemm::Pack(const void* b, std::byte* packed) const {
  syntra::Pack(PackingOfB(problem_), b, packed);
}

size_t TileGemm::workspace_bytes() const {
  return problem_.transpose_a ? PackedBytes(PackingOfA(problem_)) : 0;
}

void TileGemm::Run(const void* a, const std::byte* packed, void* c, std::byte* workspace,
                   void* mask) const {
  const GemmProblem& p = problem_;
  if (p.transpose_a) {
    syntra::Pack(PackingOfA(p), a, workspace);
    a = workspace;
  }
  const Operands operands{static_cast<const std::byte*>(a), packed, static_cast<std::byte*>(c),
                          static_cast<std::byte*>(mask)};
  const int64_t bands = DivideUp(p.m, part_rows_), count = bands * DivideUp(p.n, part_columns_);
  const auto multiply = [&](int64_t i) {
    const int64_t row = i % bands * part_rows_, column = i / bands * part_columns_;
    Multiply(operands,
             {row, std::min(part_rows_, p.m - row), column, std::min(part_columns_, p.n - column)});
  };
  if (is_shared_) {
    ParallelTasks(count, multiply);
  } else {
    for (int64_t i = 0; i < count; ++i) multiply(i);
  }
}

void TileGemm::Multiply(const Operands& operands, const Part& part) const {
  const GemmProblem& p = problem_;
  const int64_t panel_bytes = words_ * kPanelRowBytes;
  const int64_t a_row = 2 * p.a_row();
  const auto element = static_cast<int64_t>(SizeOf(p.c));
  const int64_t c_row = element * p.c_row();
  const int64_t mask_row = MaskStride(p.n);
  const auto rows_at = [&](int64_t row) -> AmxTiles::Rows {
    if (p.transpose_a) {
      return AmxTiles::Rows::OfPanel(operands.a + row / kPanelColumns * panel_bytes,
                                     row % kPanelColumns);
    }
    return {operands.a + row * a_row, a_row, kBlockWords * a_row, kBlockWords * kWordBytes};
  };
  const auto columns_at = [&](int64_t column) {
    return operands.packed + column / kPanelColumns * panel_bytes +
           column % kPanelColumns * kWordBytes;
  };
  const auto block_at = [&](int64_t row, int64_t column) -> TileBlock {
    std::byte* mask = operands.mask;
    if (mask != nullptr) mask += row * mask_row + column / 8;
    return {operands.c + row * c_row + column * element, c_row, mask, mask_row};
  };
  const int64_t end = part.row + part.rows, blocks = part.columns / kBlockColumns;
  // The part of the rows below that is fetched with block `block` of a row of blocks.
  const auto ahead = [&](int64_t row, int64_t block) -> TileAhead {
    const int64_t next = row + kBlockRows, rows = std::min(kBlockRows, p.m - next);
    if (p.transpose_a || rows <= 0) return {};
    const int64_t first = rows * block / blocks;
    return {operands.a + (next + first) * a_row, a_row, rows * (block + 1) / blocks - first};
  };
  AmxTiles tiles({p.c, p.alpha, p.accumulate, p.epilogue}, std::min(kBlockRows, part.rows));
  for (int64_t row = part.row; row < end; row += kBlockRows) {
    if (row > part.row && end - row < kBlockRows) tiles.Configure(end - row);
    for (int64_t block = 0; block < blocks; ++block) {
      const int64_t column = part.column + block * kBlockColumns;
      tiles.Multiply(rows_at(row), columns_at(column), words_, block_at(row, column),
                     ahead(row, block));
    }
  }
}

}  // namespace syntra
