// SPDX-License-Identifier: Apache-2.0
// Dimensions of the tiles and the products that fill them.
#include "kernels/cpu/vocabulary_tiles.h"

#include <algorithm>

#include "base/divide.h"
#include "core/buffer.h"
#include "kernels/cpu/copy.h"
#include "kernels/cpu/pack.h"
#include "kernels/packed_weights.h"

namespace syntra {

namespace {

// A tile of 512 x 1152 logits takes 2.4 MB in f32. The logits of a chunk, which the gradient keeps,
// take at most 64 MB, or are those of 64 tokens. Every chunk packs all of the embedding.
constexpr int64_t kMostRows = 512, kFewestRows = 64, kChunkLogits = 16 << 20;
constexpr int64_t kFewestPanels = 12, kMostPanels = 20;

// Blocks are whole panels, since products are blocked that way, with as few columns as possible
// left for the last block.
int64_t BlockColumns(int64_t vocabulary) {
  const int64_t panels = DivideUp(vocabulary, kPanelColumns);
  if (panels <= kMostPanels) return vocabulary;
  int64_t best = kMostPanels;
  for (int64_t size = kMostPanels; size >= kFewestPanels; --size) {
    const auto covered = [panels](int64_t s) { return DivideUp(panels, s) * s; };
    if (covered(size) < covered(best)) best = size;
  }
  return best * kPanelColumns;
}

}  // namespace

Projection ProjectionOf(const OpCall& call) {
  const TensorType &hidden = call.inputs[0], &embedding = call.inputs[1];
  return {hidden.shape.rows(), hidden.shape[-1], embedding.shape[0], hidden.dtype,
          static_cast<float>(call.attributes.Number("scale"))};
}

VocabularyTiles::VocabularyTiles(const Projection& projection) : projection_(projection) {
  const int64_t most = std::clamp(kChunkLogits / projection.vocabulary, kFewestRows, kMostRows);
  chunk_count_ = DivideUp(projection.tokens, most);
  chunk_rows_ = DivideUp(projection.tokens, chunk_count_);
  block_columns_ = BlockColumns(projection.vocabulary);
  block_count_ = DivideUp(projection.vocabulary, block_columns_);
}

int64_t VocabularyTiles::block_columns(int64_t block) const {
  return std::min(block_columns_, projection_.vocabulary - block * block_columns_);
}

LogitTile VocabularyTiles::tile(int64_t chunk, int64_t block, float* logits) const {
  const int64_t due = chunk * chunk_rows_;
  const int64_t first = std::min(due, projection_.tokens - chunk_rows_);
  return {.first_token = first,
          .rows = chunk_rows_,
          .repeated = due - first,
          .block = block,
          .first_column = block * block_columns_,
          .columns = block_columns(block),
          .logits = logits};
}

BlockRows::BlockRows(const VocabularyTiles& tiles) : tiles_(tiles) {
  const Projection& projection = tiles.projection();
  if (projection.dtype == DType::kF32) return;
  for (int variant = tiles.first_variant(); variant < 2; ++variant) {
    const Shape shape{tiles.variant_columns(variant), projection.width};
    const TensorType rounded{projection.dtype, shape};
    rounded_bytes_ = std::max(rounded_bytes_, AlignUp(rounded.bytes()));
    round_[variant] =
        cpu_copy({.inputs = {{DType::kF32, shape}}, .outputs = {rounded}, .accumulate = {false}})
            ->run;
  }
}

const std::byte* BlockRows::Get(const float* embedding, int64_t block, std::byte* workspace) const {
  const float* rows = embedding + block * tiles_.largest_block() * tiles_.projection().width;
  const auto& round = round_[tiles_.variant(block)];
  if (!round) return reinterpret_cast<const std::byte*>(rows);
  void *from = const_cast<float*>(rows), *to = workspace;
  round({.inputs = {&from, 1}, .outputs = {&to, 1}, .workspace = nullptr});
  return workspace;
}

LogitProducts::LogitProducts(const VocabularyTiles& tiles, PackedWeights* weights)
    : tiles_(tiles), weights_(weights), rows_(tiles) {
  const Projection& projection = tiles.projection();
  for (int variant = tiles.first_variant(); variant < 2; ++variant) {
    GemmProblem problem;
    problem.m = tiles.chunk_rows();
    problem.n = tiles.variant_columns(variant);
    problem.k = projection.width;
    problem.transpose_b = true;
    problem.ab = projection.dtype;
    problem.alpha = projection.scale;
    if (weights) {
      packed_[variant] = PackedGemm(problem, DType::kF32, GemmThreads::kCaller);
      product_bytes_ = std::max(product_bytes_, packed_[variant].workspace_bytes());
    } else {
      product_[variant] = Gemm(problem, GemmThreads::kCaller);
      product_bytes_ = std::max(product_bytes_, product_[variant].workspace_bytes());
    }
  }
}

size_t LogitProducts::workspace_bytes() const { return rows_.workspace_bytes() + product_bytes_; }

void LogitProducts::Run(const std::byte* hidden, const float* embedding, const LogitTile& tile,
                        std::byte* workspace) const {
  const Projection& projection = tiles_.projection();
  const int variant = tiles_.variant(tile.block);
  hidden += tile.first_token * projection.width * SizeOf(projection.dtype);
  std::byte* scratch = workspace + rows_.workspace_bytes();
  if (weights_) {
    const PackedGemm& product = packed_[variant];
    const void* rows = embedding + tile.first_column * projection.width;
    const auto pack = [&](std::byte* packed) { product.Pack(rows, packed, scratch); };
    const std::byte* packed =
        weights_->Get({&rows, 1}, product.layout(), product.packed_bytes(), pack);
    product.Run(hidden, packed, tile.logits, scratch);
    return;
  }
  product_[variant].Run(hidden, rows_.Get(embedding, tile.block, workspace), tile.logits, scratch);
}

}  // namespace syntra
