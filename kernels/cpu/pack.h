// SPDX-License-Identifier: Apache-2.0
// Transposes and packs operands of matrix products.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/dtype.h"

namespace syntra {

// to[c, r] = from[r, c] for a matrix of f32 or bf16 whose rows are `stride` elements apart.
struct Transposition {
  int64_t rows, columns, stride;
  DType dtype;
};
void Transpose(const Transposition& shape, const void* from, void* to);

// A packed matrix consists of panels of 64 columns, and a panel of rows of words of 4 bytes: an
// f32, or a pair of bf16 from two rows. oneDNN's blocks are 16 of these rows.
inline constexpr int64_t kWordBytes = 4;
inline constexpr int64_t kPanelColumns = 64, kPanelRowBytes = kPanelColumns * kWordBytes;
inline constexpr int64_t kBlockWords = 16;
constexpr int64_t RowsPerWord(DType packed) { return packed == DType::kBF16 ? 2 : 1; }

// How a panel is laid out. The last two are for kernels that read the panel as the left operand,
// and find what they read next side by side.
enum class PanelLayout {
  kRows,     // row after row; where panels are whole blocks, oneDNN's BA16a64b and BA16a64b2a
  kStrips,   // strips of kStripColumns columns, each with all rows; the last strip is narrower
  kSquares,  // blocks, each as four transposed squares of 16 columns: rows of 16 words
};
inline constexpr int64_t kStripColumns = 6;
inline constexpr int64_t kSquareRowBytes = kBlockWords * kWordBytes;
inline constexpr int64_t kSquareBytes = kBlockWords * kSquareRowBytes;

// Packs B [k, n] of a product.
struct PanelPacking {
  int64_t k, n;
  bool transposed;       // B is stored as [n, k]
  DType stored, packed;  // f32 is rounded if packed as bf16
  int64_t stride = 0;    // elements from one stored row to the next; 0: rows are dense
  int64_t whole_k = 0;   // rows of the B of which these are some; 0: these are all
  bool fill = false;     // whether rows of zeros complete the last block; always in kSquares
  PanelLayout layout = PanelLayout::kRows;  // if `transposed`, kRows

  int64_t stored_stride() const { return stride > 0 ? stride : transposed ? k : n; }
};
bool CanPack(const PanelPacking& packing);
// Rows of words from one packed panel to the next.
int64_t PackedWords(const PanelPacking& packing);
// The bytes of all panels.
size_t PackedBytes(const PanelPacking& packing);
void Pack(const PanelPacking& packing, const void* b, std::byte* to);

}  // namespace syntra
