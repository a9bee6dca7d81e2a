// SPDX-License-Identifier: Apache-2.0
// Products of bf16 in AMX's tiles: registers of 16 rows of 64 bytes. Sums are f32; subnormal
// numbers count as zero. Intel, "Intel 64 and IA-32 Architectures Software Developer's Manual",
// volume 1, chapter 18.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/pack.h"

namespace syntra {

// Configures the calling thread's tiles for products of blocks while it is alive. These objects do
// not nest, and need AmxMultipliesBFloat16 (processor.h).
class AmxTiles {
 public:
  // `rows` of C's blocks: 1 to kBlockRows.
  explicit AmxTiles(int64_t rows = kBlockRows) { Configure(rows); }
  ~AmxTiles();
  AmxTiles(const AmxTiles&) = delete;
  AmxTiles& operator=(const AmxTiles&) = delete;

  void Configure(int64_t rows);

  static constexpr int64_t kBlockRows = 32, kBlockColumns = 32;
  // Rows of A, of words of two bf16. All distances are in bytes.
  struct Rows {
    const std::byte* first;
    int64_t next_row;   // within 16 rows
    int64_t next_rows;  // to the 16 rows below
    int64_t next_words;

    // From row `row` on, a multiple of 16, of a panel in squares (pack.h).
    static Rows OfPanel(const std::byte* panel, int64_t row) {
      constexpr int64_t kBlockBytes = kPanelColumns / kBlockWords * kSquareBytes;
      return {panel + row * kSquareRowBytes, kSquareRowBytes, kSquareBytes, kBlockBytes};
    }
  };

  // C (+)= A B for a block of C, whose rows are `stride` elements apart. B is half a panel in rows
  // (pack.h). `words`, a multiple of 16: the length of A's rows.
  void Multiply(const Rows& a, const std::byte* b, int64_t words, float* c, int64_t stride,
                bool accumulate) const;

  // Multiplies `rounds` times without memory, to measure the processor's peak.
  static constexpr double kRoundFlops = 4 * 2.0 * 16 * 16 * 32;
  void MultiplyInRegisters(int64_t rounds) const;

 private:
  bool lower_ = false;  // whether blocks have more than 16 rows
};

}  // namespace syntra
