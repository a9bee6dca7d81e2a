// SPDX-License-Identifier: Apache-2.0
// Products of bf16 in AMX's tiles: registers of 16 rows of 64 bytes. Sums are f32; subnormal
// numbers count as zero. Intel, "Intel 64 and IA-32 Architectures Software Developer's Manual",
// volume 1, chapter 18.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/pack.h"
#include "kernels/gemm_problem.h"

namespace syntra {

// How sums become elements of C (gemm_problem.h).
struct TileResult {
  DType type = DType::kF32;
  float alpha = 1.0f;
  bool accumulate = false;
  Epilogue epilogue = Epilogue::kNone;
};

// A block of C and, for epilogues with a mask, of that (kernels/bit_mask.h).
struct TileBlock {
  std::byte* c = nullptr;
  int64_t next_row = 0;
  std::byte* mask = nullptr;
  int64_t next_mask_row = 0;
};

// Rows as long as A's that are needed soon, and are fetched into the second-level cache.
struct TileAhead {
  const std::byte* first = nullptr;
  int64_t next_row = 0, rows = 0;
};

// Multiplies blocks on the calling thread, whose tiles it configures while it is alive. A block's
// sums are stored in C while the next block is multiplied, because instructions on tiles leave a
// core's other units idle; those of the last block when the object is configured again or
// destroyed. These objects do not nest, and need AmxMultipliesBFloat16 (processor.h).
class AmxTiles {
 public:
  // `rows` of C's blocks: 1 to kBlockRows.
  explicit AmxTiles(const TileResult& result = {}, int64_t rows = kBlockRows) : result_(result) {
    Configure(rows);
  }
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
  // C = A B for a block of C. B is half a panel in rows (pack.h). `words`, a multiple of 16: the
  // length of A's rows. The operands may change once this returns, C must not.
  void Multiply(const Rows& a, const std::byte* b, int64_t words, const TileBlock& c,
                const TileAhead& ahead = {});

  // Multiplies `rounds` times without memory, to measure the processor's peak.
  static constexpr double kRoundFlops = 4 * 2.0 * 16 * 16 * 32;
  void MultiplyInRegisters(int64_t rounds) const;

 private:
  using Sums = float[kBlockRows * kBlockColumns];
  // Where a block's sums go, and whether they are added to what is there.
  struct Target {
    std::byte* first;
    int64_t next_row;  // bytes
    bool adds;
  };

  template <bool kLower>
  void MultiplyBlock(const Rows& a, const std::byte* b, int64_t words, const TileBlock& c,
                     const TileAhead& ahead, const Target& to) const;
  void StoreLastRows(int64_t begin, int64_t end) const;
  void StoreLast();

  TileResult result_;
  int64_t rows_ = 0;
  // The block whose sums are not yet stored, if it has an address, and the index of its sums.
  TileBlock last_;
  int last_sums_ = 0;
  alignas(64) Sums sums_[2];
};

}  // namespace syntra
