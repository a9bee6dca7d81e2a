// Sizes of the tiles and the products that fill them.
#include "kernels/cpu/vocabulary_tiles.h"

#include <algorithm>

#include "kernels/cpu/copy.h"

namespace syntra {

namespace {

// A tile of 512 x 2304 logits is 4.7 MB in f32.
constexpr int64_t kChunkRows = 512, kPanel = 64, kFewestPanels = 24, kMostPanels = 40;

int64_t CeilDivide(int64_t a, int64_t b) { return (a + b - 1) / b; }

// Whole panels of 64 columns, which is how products are blocked, with the least left over in the
// end.
int64_t BlockColumns(int64_t vocabulary) {
  const int64_t panels = CeilDivide(vocabulary, kPanel);
  if (panels <= kMostPanels) return vocabulary;
  int64_t best = kMostPanels;
  for (int64_t size = kMostPanels; size >= kFewestPanels; --size) {
    const auto covered = [panels](int64_t s) { return CeilDivide(panels, s) * s; };
    if (covered(size) < covered(best)) best = size;
  }
  return best * kPanel;
}

}  // namespace

VocabularyTiles::VocabularyTiles(const Projection& projection) : projection_(projection) {
  chunk_count_ = CeilDivide(projection.tokens, kChunkRows);
  chunk_rows_ = CeilDivide(projection.tokens, chunk_count_);
  block_columns_ = BlockColumns(projection.vocabulary);
  block_count_ = CeilDivide(projection.vocabulary, block_columns_);
}

TokenChunk VocabularyTiles::chunk(int64_t i) const {
  const int64_t due = i * chunk_rows_;
  const int64_t first = std::min(due, projection_.tokens - chunk_rows_);
  return {first, due - first};
}

int64_t VocabularyTiles::block_columns(int64_t block) const {
  return std::min(block_columns_, projection_.vocabulary - block * block_columns_);
}

BlockRows::BlockRows(const VocabularyTiles& tiles) : tiles_(tiles) {
  const Projection& projection = tiles.projection();
  if (projection.dtype == DType::kF32) return;
  for (int variant = tiles.first_variant(); variant < 2; ++variant) {
    const Shape shape{tiles.variant_columns(variant), projection.width};
    const TensorType rounded{projection.dtype, shape};
    rounded_bytes_ = std::max(rounded_bytes_, rounded.bytes());
    round_[variant] =
        cpu_copy({.inputs = {{DType::kF32, shape}}, .outputs = {rounded}, .accumulate = {false}})
            ->run;
  }
}

const std::byte* BlockRows::Get(const float* embedding, int64_t block, std::byte* workspace) const {
  const float* rows = embedding + tiles_.block_first(block) * tiles_.projection().width;
  const auto& round = round_[tiles_.variant(block)];
  if (!round) return reinterpret_cast<const std::byte*>(rows);
  void *from = const_cast<float*>(rows), *to = workspace;
  round({.inputs = {&from, 1}, .outputs = {&to, 1}, .workspace = nullptr});
  return workspace;
}

LogitProducts::LogitProducts(const VocabularyTiles& tiles) : tiles_(tiles) {
  const Projection& projection = tiles.projection();
  for (int variant = tiles.first_variant(); variant < 2; ++variant) {
    GemmProblem problem;
    problem.m = tiles.chunk_rows();
    problem.n = tiles.variant_columns(variant);
    problem.k = projection.width;
    problem.transpose_b = true;
    problem.ab = projection.dtype;
    problem.alpha = projection.scale;
    if (tiles.chunk_count() > 1) {
      PackedGemm& gemm = packed_[variant];
      gemm = PackedGemm(problem, projection.dtype, GemmThreads::kPool);
      packed_bytes_ = std::max(packed_bytes_, gemm.packed_bytes());
      workspace_bytes_ = std::max(workspace_bytes_, gemm.workspace_bytes());
    } else {
      plain_[variant] = Gemm(problem, GemmThreads::kPool);
      workspace_bytes_ = std::max(workspace_bytes_, plain_[variant].workspace_bytes());
    }
  }
}

void LogitProducts::Prepare(const std::byte* rows, int64_t block, std::byte* packed,
                            std::byte* workspace) const {
  const PackedGemm& gemm = packed_[tiles_.variant(block)];
  if (gemm.bound()) gemm.Pack(rows, packed, workspace);
}

void LogitProducts::Run(const void* hidden, const std::byte* rows, int64_t block,
                        const std::byte* packed, float* logits, std::byte* workspace) const {
  const int variant = tiles_.variant(block);
  if (packed_[variant].bound()) {
    packed_[variant].Run(hidden, packed, logits, workspace);
  } else {
    plain_[variant].Run(hidden, rows, logits, workspace);
  }
}

}  // namespace syntra
