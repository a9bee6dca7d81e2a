// SPDX-License-Identifier: Apache-2.0
// The output projection, scale * hidden embedding^T, computed in tiles. The outer loop is over
// chunks of tokens, the inner one over blocks of the vocabulary, one block per thread, so that a
// tile of logits stays in the thread's cache. All chunks have the same number of rows: the last one
// may overlap the one before it, and its first `repeated` rows then occur in both. The blocks do
// not depend on the number of threads.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>

#include "kernels/bound_kernel.h"
#include "kernels/cpu/gemm.h"

namespace syntra {

struct Projection {
  int64_t tokens, width, vocabulary;
  DType dtype;  // of hidden and of the products' operands
  float scale;
};

// The projection of a call whose first inputs are hidden and embedding.
Projection ProjectionOf(const OpCall& call);

struct LogitTile {
  int64_t first_token, rows, repeated;
  int64_t block, first_column, columns;
  float* logits;  // [rows, columns]
};

class VocabularyTiles {
 public:
  explicit VocabularyTiles(const Projection& projection);

  const Projection& projection() const { return projection_; }
  int64_t chunk_rows() const { return chunk_rows_; }
  int64_t chunk_count() const { return chunk_count_; }
  int64_t block_count() const { return block_count_; }
  int64_t block_columns(int64_t block) const;
  int64_t largest_block() const { return block_columns_; }
  LogitTile tile(int64_t chunk, int64_t block, float* logits) const;

  // Which of two plans the block uses: 1 for the last block, which may be smaller, otherwise 0.
  int variant(int64_t block) const { return block + 1 == block_count_ ? 1 : 0; }
  // The first variant that occurs.
  int first_variant() const { return block_count_ == 1 ? 1 : 0; }
  int64_t variant_columns(int variant) const {
    return block_columns(variant == 1 ? block_count_ - 1 : 0);
  }

 private:
  Projection projection_;
  int64_t chunk_rows_, chunk_count_, block_columns_, block_count_;
};

// A block of the embedding's rows in the projection's type: unchanged in f32, rounded in bf16.
class BlockRows {
 public:
  explicit BlockRows(const VocabularyTiles& tiles);

  size_t workspace_bytes() const { return rounded_bytes_; }
  // The address of the rows. They are in `workspace` if they had to be rounded.
  const std::byte* Get(const float* embedding, int64_t block, std::byte* workspace) const;

 private:
  VocabularyTiles tiles_;
  size_t rounded_bytes_ = 0;
  std::array<std::function<void(const KernelArguments&)>, 2> round_;
};

// Fills a tile with logits on the calling thread.
class LogitProducts {
 public:
  // `weights`: where the embedding stays packed, or null.
  explicit LogitProducts(const VocabularyTiles& tiles, PackedWeights* weights = nullptr);

  size_t workspace_bytes() const;  // for each thread
  void Run(const std::byte* hidden, const float* embedding, const LogitTile& tile,
           std::byte* workspace) const;

 private:
  VocabularyTiles tiles_;
  PackedWeights* weights_;
  BlockRows rows_;
  std::array<Gemm, 2> product_;
  std::array<PackedGemm, 2> packed_;  // instead of the above if the weights stay packed
  size_t product_bytes_ = 0;
};

}  // namespace syntra
