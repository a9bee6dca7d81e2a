// The output projection, scale * hidden embedding^T, tile by tile: blocks of the vocabulary
// outside, chunks of tokens inside, so that the embedding is read (and in bf16 packed) once and a
// tile of logits stays in cache. All chunks have the same number of rows; the last one may begin
// before the end of the one before it, and its first rows are then `repeated`.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>

#include "kernels/cpu/gemm.h"
#include "kernels/op.h"

namespace syntra {

struct Projection {
  int64_t tokens, width, vocabulary;
  DType dtype;  // of hidden, and of the products' operands
  float scale;
};

struct TokenChunk {
  int64_t first, repeated;
};

class VocabularyTiles {
 public:
  explicit VocabularyTiles(const Projection& projection);

  const Projection& projection() const { return projection_; }
  int64_t chunk_rows() const { return chunk_rows_; }
  int64_t chunk_count() const { return chunk_count_; }
  TokenChunk chunk(int64_t i) const;

  int64_t block_count() const { return block_count_; }
  int64_t block_first(int64_t block) const { return block * block_columns_; }
  int64_t block_columns(int64_t block) const;
  int64_t largest_block() const { return block_columns_; }
  // 0 for all blocks but the last, which may be smaller: which of two plans serves the block.
  int variant(int64_t block) const { return block + 1 == block_count_ ? 1 : 0; }
  // Variants that some block has.
  int first_variant() const { return block_count_ == 1 ? 1 : 0; }
  int64_t variant_columns(int variant) const {
    return block_columns(variant == 1 ? block_count_ - 1 : 0);
  }

 private:
  Projection projection_;
  int64_t chunk_rows_, chunk_count_, block_columns_, block_count_;
};

// A block of the embedding's rows in the projection's type: as they are in f32, rounded in bf16.
class BlockRows {
 public:
  explicit BlockRows(const VocabularyTiles& tiles);

  size_t workspace_bytes() const { return rounded_bytes_; }
  // The rows, in `workspace` if they had to be rounded.
  const std::byte* Get(const float* embedding, int64_t block, std::byte* workspace) const;

 private:
  VocabularyTiles tiles_;
  size_t rounded_bytes_ = 0;
  std::array<std::function<void(const KernelArguments&)>, 2> round_;
};

// hidden chunk x block rows^T -> f32 logits [chunk_rows, block columns]. The rows are packed where
// several chunks share them.
class LogitProducts {
 public:
  explicit LogitProducts(const VocabularyTiles& tiles);

  size_t packed_bytes() const { return packed_bytes_; }
  size_t workspace_bytes() const { return workspace_bytes_; }
  void Prepare(const std::byte* rows, int64_t block, std::byte* packed, std::byte* workspace) const;
  // `hidden`: the first row of the chunk, in the projection's type.
  void Run(const void* hidden, const std::byte* rows, int64_t block, const std::byte* packed,
           float* logits, std::byte* workspace) const;

 private:
  VocabularyTiles tiles_;
  std::array<Gemm, 2> plain_;
  std::array<PackedGemm, 2> packed_;
  size_t packed_bytes_ = 0, workspace_bytes_ = 0;
};

}  // namespace syntra
