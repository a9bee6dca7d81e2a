// SPDX-License-Identifier: Apache-2.0
// linear_cross_entropy and its gradient on tiles of logits (see vocabulary_tiles.h). Both compute a
// chunk's logits once, replace them by exp(logit - largest of the row in the tile) and keep their
// sums, which give each token's log_z. The gradient keeps the chunk's tiles and turns them into
// dlogits. Then dE = dlogits^T hidden. dhidden = dlogits E is one part per block of the vocabulary;
// the parts are added in order.
#include <limits>
#include <memory>

#include "core/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/linear_cross_entropy.cc"
#include "hwy/foreach_target.h"
#include "kernels/cpu/exp-inl.h"
#include "kernels/cpu/linear_cross_entropy.h"
#include "kernels/cpu/reduce-inl.h"
#include "kernels/cpu/vocabulary_tiles.h"
#include "kernels/math/loss_statistics.h"
#include "kernels/target_row.h"
#include "kernels/workspace.h"

HWY_BEFORE_NAMESPACE();
namespace syntra {
namespace HWY_NAMESPACE {

BlockSums ExponentialsOfRow(float* logits, int64_t columns, bool with_sum) {
  const FloatTag d;
  const float largest = LargestOf(logits, columns);
  FloatVector sum = hn::Zero(d), sum_of_logits = hn::Zero(d);
  VectorLoop(columns, [&](int64_t j, auto lanes) {
    const FloatVector logit = Load(logits + j, lanes);
    const FloatVector value = FastExp(hn::Sub(logit, hn::Set(d, largest)));
    Store(value, logits + j, lanes);
    sum = hn::Add(sum, Valid(value, lanes));
    if (with_sum) sum_of_logits = hn::Add(sum_of_logits, logit);
  });
  return {largest, SumLanes(sum), SumLanes(sum_of_logits)};
}

// Turns logits into exponentials and sums each row. Rows without a target are skipped.
void FormExponentials(const LogitTile& tile, bool with_sum, TokenSoftmax* tokens, BlockSums* sums) {
  for (int64_t row = tile.repeated; row < tile.rows; ++row) {
    if (tokens[row].target < 0) continue;
    float* logits = tile.logits + row * tile.columns;
    const int64_t target = tokens[row].target - tile.first_column;
    if (target >= 0 && target < tile.columns) tokens[row].target_logit = logits[target];
    sums[row] = ExponentialsOfRow(logits, tile.columns, with_sum);
  }
}

// Turns exponentials into dlogits of type T (in place if T is f32).
template <typename T>
void DlogitRows(const LogitTile& tile, const TokenSoftmax* tokens, const BlockSums* sums,
                const DlogitFactors& factors, T* dlogits) {
  const FloatTag d;
  for (int64_t row = 0; row < tile.rows; ++row) {
    const TokenSoftmax& token = tokens[row];
    T* to = dlogits + row * tile.columns;
    if (row < tile.repeated || token.target < 0) {
      std::memset(to, 0, tile.columns * sizeof(T));
      continue;
    }
    const double share = factors.factor * (1.0 + 2.0 * factors.z_loss * token.log_z);
    const float* exponentials = tile.logits + row * tile.columns;
    const FloatVector scale =
        hn::Set(d, static_cast<float>(share * std::exp(sums[row].largest - token.log_z)));
    const FloatVector smoothed = hn::Set(d, static_cast<float>(factors.smoothed));
    VectorLoop(tile.columns, [&](int64_t j, auto lanes) {
      Store(hn::MulSub(scale, Load(exponentials + j, lanes), smoothed), to + j, lanes);
    });
    const int64_t target = token.target - tile.first_column;
    if (target < 0 || target >= tile.columns) continue;
    const double probability = std::exp(token.target_logit - token.log_z);
    const double value = share * probability - factors.smoothed - factors.target_share;
    Store(hn::Set(d, static_cast<float>(value)), to + target, Part{1});
  }
}

void FormDlogits(const LogitTile& tile, const TokenSoftmax* tokens, const BlockSums* sums,
                 const DlogitFactors& factors, BFloat16* rounded) {
  if (rounded != nullptr) {
    DlogitRows(tile, tokens, sums, factors, rounded);
  } else {
    DlogitRows(tile, tokens, sums, factors, tile.logits);
  }
}

// The sum of `count` arrays of `size` floats, `stride` floats apart.
void SumParts(const float* parts, int64_t count, int64_t stride, int64_t size, DType dtype,
              void* sum, bool accumulate) {
  WithActivation(dtype, [&](auto type) {
    auto* to = static_cast<decltype(type)*>(sum);
    ParallelVectorLoop(size, [=](int64_t i, auto lanes) {
      FloatVector total = Load(parts + i, lanes);
      for (int64_t part = 1; part < count; ++part) {
        total = hn::Add(total, Load(parts + part * stride + i, lanes));
      }
      StoreResult(total, to + i, lanes, accumulate);
    });
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace syntra
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace syntra {

HWY_EXPORT(FormExponentials);
HWY_EXPORT(FormDlogits);
HWY_EXPORT(SumParts);

namespace {

struct Loss {
  double z_loss, label_smoothing;
  int32_t first;  // target of row 0 of the embedding
};

// The sums over all tokens.
struct LossSums {
  double total = 0.0, negative_log_likelihood = 0.0, z_terms = 0.0, tokens = 0.0;

  // Loss and statistics are the outputs from `first` on.
  void Store(const KernelArguments& arguments, int first, bool accumulate_loss,
             bool accumulate_statistics) const {
    const auto store = [](float* to, double value, bool accumulate) {
      *to = static_cast<float>(value) + (accumulate ? *to : 0.0f);
    };
    if (auto* loss = Output<float>(arguments, first)) {
      store(loss, Input<float>(arguments, 3)[0] * total, accumulate_loss);
    }
    if (auto* statistics = Output<float>(arguments, first + 1)) {
      store(statistics + loss_statistics::kNegativeLogP, negative_log_likelihood,
            accumulate_statistics);
      store(statistics + loss_statistics::kZLoss, z_terms, accumulate_statistics);
      store(statistics + loss_statistics::kTokens, tokens, accumulate_statistics);
    }
  }
};

// Whether all tiles of a chunk are kept, or only the current one of each thread.
enum class Tiles { kKept, kPassing };

// The softmax of a chunk's tokens over the vocabulary, unnormalised.
class ChunkSoftmax {
 public:
  ChunkSoftmax(const VocabularyTiles& tiles, const Loss& loss, Tiles keep, WorkspaceLayout& layout)
      : tiles_(tiles),
        products_(tiles),
        loss_(loss),
        keep_(keep),
        tile_bytes_(AlignUp(tiles.chunk_rows() * tiles.largest_block() * sizeof(float))) {
    exponentials_ =
        layout.Place((keep == Tiles::kKept ? tiles.block_count() : ThreadCount()) * tile_bytes_);
    tokens_ = layout.Place(tiles.chunk_rows() * sizeof(TokenSoftmax));
    sums_ = layout.Place(tiles.chunk_rows() * tiles.block_count() * sizeof(BlockSums));
    scratch_ = layout.Place(ThreadCount() * products_.workspace_bytes());
  }

  // Adds the chunk's losses.
  void Run(const KernelArguments& arguments, int64_t chunk, LossSums& losses) const {
    LoadTargets(arguments, chunk);
    ParallelTasks(tiles_.block_count(), [&](int64_t block) {
      const LogitTile tile = TileOf(arguments, chunk, block);
      products_.Run(Input<std::byte>(arguments, 0), Input<float>(arguments, 1), tile,
                    arguments.workspace + scratch_ + ThreadIndex() * products_.workspace_bytes());
      HWY_DYNAMIC_DISPATCH(FormExponentials)
      (tile, loss_.label_smoothing > 0.0, tokens(arguments), sums(arguments, block));
    });
    Finish(arguments, chunk, losses);
  }

  LogitTile TileOf(const KernelArguments& arguments, int64_t chunk, int64_t block) const {
    const int64_t place = keep_ == Tiles::kKept ? block : ThreadIndex();
    std::byte* tile = arguments.workspace + exponentials_ + place * tile_bytes_;
    return tiles_.tile(chunk, block, reinterpret_cast<float*>(tile));
  }
  TokenSoftmax* tokens(const KernelArguments& arguments) const {
    return reinterpret_cast<TokenSoftmax*>(arguments.workspace + tokens_);
  }
  BlockSums* sums(const KernelArguments& arguments, int64_t block) const {
    return reinterpret_cast<BlockSums*>(arguments.workspace + sums_) + block * tiles_.chunk_rows();
  }

 private:
  void LoadTargets(const KernelArguments& arguments, int64_t chunk) const {
    const int64_t vocabulary = tiles_.projection().vocabulary;
    const int32_t* targets =
        Input<int32_t>(arguments, 2) + tiles_.tile(chunk, 0, nullptr).first_token;
    for (int64_t row = 0; row < tiles_.chunk_rows(); ++row) {
      const int32_t target = TargetRow(targets[row], loss_.first);
      SYNTRA_CHECK(target < vocabulary, "target {} outside a vocabulary of {}", targets[row],
                   vocabulary);
      tokens(arguments)[row] = {.target = target, .target_logit = 0.0f, .log_z = 0.0};
    }
  }

  // Computes log_z of each token from its sums over the blocks, and its loss.
  void Finish(const KernelArguments& arguments, int64_t chunk, LossSums& losses) const {
    const LogitTile chunk_rows = tiles_.tile(chunk, 0, nullptr);
    const double smoothing = loss_.label_smoothing;
    for (int64_t row = chunk_rows.repeated; row < chunk_rows.rows; ++row) {
      TokenSoftmax& token = tokens(arguments)[row];
      if (token.target < 0) continue;
      double largest = -std::numeric_limits<double>::infinity(), exponentials = 0.0, logits = 0.0;
      for (int64_t block = 0; block < tiles_.block_count(); ++block) {
        largest = std::max<double>(largest, sums(arguments, block)[row].largest);
      }
      for (int64_t block = 0; block < tiles_.block_count(); ++block) {
        const BlockSums& sum = sums(arguments, block)[row];
        exponentials += sum.exponentials * std::exp(sum.largest - largest);
        logits += sum.logits;
      }
      token.log_z = largest + std::log(exponentials);
      const double expected =
          (1.0 - smoothing) * token.target_logit +
          smoothing / static_cast<double>(tiles_.projection().vocabulary) * logits;
      const double z_term = loss_.z_loss * token.log_z * token.log_z;
      losses.total += token.log_z - expected + z_term;
      losses.negative_log_likelihood += token.log_z - token.target_logit;
      losses.z_terms += z_term;
      losses.tokens += 1.0;
    }
  }

  VocabularyTiles tiles_;
  LogitProducts products_;
  Loss loss_;
  Tiles keep_;
  size_t tile_bytes_, exponentials_, tokens_, sums_, scratch_;
};

class CrossEntropy {
 public:
  CrossEntropy(const Projection& projection, const Loss& loss)
      : tiles_(projection), softmax_(tiles_, loss, Tiles::kPassing, layout_) {}

  size_t workspace_bytes() const { return layout_.bytes(); }

  void Run(const KernelArguments& arguments) const {
    LossSums sums;
    for (int64_t chunk = 0; chunk < tiles_.chunk_count(); ++chunk) {
      softmax_.Run(arguments, chunk, sums);
    }
    sums.Store(arguments, 0, false, false);
  }

 private:
  VocabularyTiles tiles_;
  WorkspaceLayout layout_;
  ChunkSoftmax softmax_;
};

// dlogits [rows, columns] x block of the embedding -> the block's part of dhidden [rows, width].
class HiddenProducts {
 public:
  explicit HiddenProducts(const VocabularyTiles& tiles) : tiles_(tiles), rows_(tiles) {
    for (int variant = tiles.first_variant(); variant < 2; ++variant) {
      product_[variant] = Gemm({.m = tiles.chunk_rows(),
                                .n = tiles.projection().width,
                                .k = tiles.variant_columns(variant),
                                .ab = tiles.projection().dtype},
                               GemmThreads::kCaller);
      product_bytes_ = std::max(product_bytes_, product_[variant].workspace_bytes());
    }
  }

  size_t workspace_bytes() const { return rows_.workspace_bytes() + product_bytes_; }
  void Run(const void* dlogits, const float* embedding, int64_t block, float* part,
           std::byte* workspace) const {
    const std::byte* rows = rows_.Get(embedding, block, workspace);
    product_[tiles_.variant(block)].Run(dlogits, rows, part, workspace + rows_.workspace_bytes());
  }

 private:
  VocabularyTiles tiles_;
  BlockRows rows_;
  std::array<Gemm, 2> product_;
  size_t product_bytes_ = 0;
};

// dlogits^T [columns, rows] x hidden [rows, width] -> rows of dembedding. Chunks after the first
// add to it. hidden is packed once for all blocks.
class EmbeddingProducts {
 public:
  EmbeddingProducts(const VocabularyTiles& tiles, bool accumulate) : tiles_(tiles) {
    for (int variant = tiles.first_variant(); variant < 2; ++variant) {
      for (const bool next : {false, true}) {
        PackedGemm& gemm = product_[variant][next];
        gemm = PackedGemm({.m = tiles.variant_columns(variant),
                           .n = tiles.projection().width,
                           .k = tiles.chunk_rows(),
                           .transpose_a = true,
                           .ab = tiles.projection().dtype,
                           .accumulate = accumulate || next},
                          tiles.projection().dtype, GemmThreads::kCaller);
        packed_bytes_ = std::max(packed_bytes_, AlignUp(gemm.packed_bytes()));
        workspace_bytes_ = std::max(workspace_bytes_, gemm.workspace_bytes());
      }
    }
  }

  size_t packed_bytes() const { return 2 * packed_bytes_; }
  size_t workspace_bytes() const { return workspace_bytes_; }

  void Pack(const void* hidden, int64_t chunk, std::byte* packed, std::byte* workspace) const {
    for (int variant = tiles_.first_variant(); variant < 2; ++variant) {
      product_[variant][chunk > 0].Pack(hidden, packed + variant * packed_bytes_, workspace);
    }
  }
  void Run(const void* dlogits, const std::byte* packed, int64_t chunk, int64_t block,
           float* dembedding, std::byte* workspace) const {
    const int variant = tiles_.variant(block);
    product_[variant][chunk > 0].Run(dlogits, packed + variant * packed_bytes_, dembedding,
                                     workspace);
  }

 private:
  VocabularyTiles tiles_;
  std::array<std::array<PackedGemm, 2>, 2> product_;  // [variant][chunk > 0]
  size_t packed_bytes_ = 0, workspace_bytes_ = 0;
};

struct Wanted {
  bool dhidden, dembedding;
  bool accumulate_dhidden, accumulate_dembedding, accumulate_loss, accumulate_statistics;
};

class CrossEntropyGrad {
 public:
  CrossEntropyGrad(const Projection& projection, const Loss& loss, const Wanted& wanted)
      : tiles_(projection),
        loss_(loss),
        wanted_(wanted),
        softmax_(tiles_, loss, Tiles::kKept, layout_),
        hidden_products_(tiles_),
        embedding_products_(tiles_, wanted.accumulate_dembedding) {
    const int64_t tile = tiles_.chunk_rows() * tiles_.largest_block();
    packed_ = layout_.Place(embedding_products_.packed_bytes());
    parts_ = layout_.Place(tiles_.block_count() * part_size() * sizeof(float));
    dlogits_bytes_ = projection.dtype == DType::kBF16 ? AlignUp(tile * sizeof(BFloat16)) : 0;
    thread_bytes_ = dlogits_bytes_ + AlignUp(std::max(hidden_products_.workspace_bytes(),
                                                      embedding_products_.workspace_bytes()));
    threads_ = layout_.Place(ThreadCount() * thread_bytes_);
  }

  size_t workspace_bytes() const { return layout_.bytes(); }
  void Run(const KernelArguments& arguments) const;

 private:
  int64_t part_size() const { return tiles_.chunk_rows() * tiles_.projection().width; }
  DlogitFactors FactorsOf(const KernelArguments& arguments) const;
  void RunChunk(const KernelArguments& arguments, const DlogitFactors& factors,
                int64_t chunk) const;
  void RunTile(const KernelArguments& arguments, const DlogitFactors& factors, int64_t chunk,
               int64_t block) const;
  void SumDhidden(const KernelArguments& arguments, int64_t chunk) const;
  float* PartsOf(const KernelArguments& arguments) const {
    return reinterpret_cast<float*>(arguments.workspace + parts_);
  }

  VocabularyTiles tiles_;
  Loss loss_;
  Wanted wanted_;
  WorkspaceLayout layout_;
  ChunkSoftmax softmax_;
  HiddenProducts hidden_products_;
  EmbeddingProducts embedding_products_;
  size_t packed_, parts_, dlogits_bytes_, thread_bytes_, threads_;
};

DlogitFactors CrossEntropyGrad::FactorsOf(const KernelArguments& arguments) const {
  const Projection& projection = tiles_.projection();
  const double factor = static_cast<double>(projection.scale) * Input<float>(arguments, 3)[0] *
                        Input<float>(arguments, 4)[0];
  return {factor, loss_.z_loss,
          factor * loss_.label_smoothing / static_cast<double>(projection.vocabulary),
          factor * (1.0 - loss_.label_smoothing)};
}

void CrossEntropyGrad::Run(const KernelArguments& arguments) const {
  const DlogitFactors factors = FactorsOf(arguments);
  LossSums sums;
  for (int64_t chunk = 0; chunk < tiles_.chunk_count(); ++chunk) {
    softmax_.Run(arguments, chunk, sums);
    RunChunk(arguments, factors, chunk);
  }
  sums.Store(arguments, 2, wanted_.accumulate_loss, wanted_.accumulate_statistics);
}

void CrossEntropyGrad::RunChunk(const KernelArguments& arguments, const DlogitFactors& factors,
                                int64_t chunk) const {
  const Projection& projection = tiles_.projection();
  if (wanted_.dembedding) {
    const int64_t first = tiles_.tile(chunk, 0, nullptr).first_token * projection.width;
    embedding_products_.Pack(Input<std::byte>(arguments, 0) + first * SizeOf(projection.dtype),
                             chunk, arguments.workspace + packed_, arguments.workspace + threads_);
  }
  ParallelTasks(tiles_.block_count(),
                [&](int64_t block) { RunTile(arguments, factors, chunk, block); });
  if (wanted_.dhidden) SumDhidden(arguments, chunk);
}

void CrossEntropyGrad::RunTile(const KernelArguments& arguments, const DlogitFactors& factors,
                               int64_t chunk, int64_t block) const {
  const LogitTile tile = softmax_.TileOf(arguments, chunk, block);
  std::byte* thread = arguments.workspace + threads_ + ThreadIndex() * thread_bytes_;
  auto* rounded = dlogits_bytes_ > 0 ? reinterpret_cast<BFloat16*>(thread) : nullptr;
  HWY_DYNAMIC_DISPATCH(FormDlogits)
  (tile, softmax_.tokens(arguments), softmax_.sums(arguments, block), factors, rounded);
  const void* dlogits = rounded != nullptr ? static_cast<const void*>(rounded) : tile.logits;
  std::byte* scratch = thread + dlogits_bytes_;
  if (wanted_.dhidden) {
    hidden_products_.Run(dlogits, Input<float>(arguments, 1), block,
                         PartsOf(arguments) + block * part_size(), scratch);
  }
  if (wanted_.dembedding) {
    embedding_products_.Run(
        dlogits, arguments.workspace + packed_, chunk, block,
        Output<float>(arguments, 1) + tile.first_column * tiles_.projection().width, scratch);
  }
}

void CrossEntropyGrad::SumDhidden(const KernelArguments& arguments, int64_t chunk) const {
  const Projection& projection = tiles_.projection();
  const LogitTile rows = tiles_.tile(chunk, 0, nullptr);
  const int64_t skipped = rows.repeated * projection.width;
  const int64_t first = rows.first_token * projection.width + skipped;
  HWY_DYNAMIC_DISPATCH(SumParts)
  (PartsOf(arguments) + skipped, tiles_.block_count(), part_size(), part_size() - skipped,
   projection.dtype, Output<std::byte>(arguments, 0) + first * SizeOf(projection.dtype),
   wanted_.accumulate_dhidden);
}

Loss LossOf(const OpCall& call) {
  return {call.attributes.Number("z_loss"), call.attributes.Number("label_smoothing"),
          static_cast<int32_t>(call.attributes.Int("first"))};
}

template <typename Plan, typename... Rest>
BoundKernel BindPlan(const OpCall& call, const Rest&... rest) {
  const auto plan = std::make_shared<const Plan>(ProjectionOf(call), LossOf(call), rest...);
  BoundKernel kernel;
  kernel.workspace_bytes = plan->workspace_bytes();
  kernel.run = [plan](const KernelArguments& arguments) { plan->Run(arguments); };
  return kernel;
}

}  // namespace

std::optional<BoundKernel> cpu_linear_cross_entropy(const OpCall& call) {
  return BindPlan<CrossEntropy>(call);
}

std::optional<BoundKernel> cpu_linear_cross_entropy_grad(const OpCall& call) {
  const Wanted wanted{.dhidden = call.outputs[0].present(),
                      .dembedding = call.outputs[1].present(),
                      .accumulate_dhidden = Accumulates(call, 0),
                      .accumulate_dembedding = Accumulates(call, 1),
                      .accumulate_loss = Accumulates(call, 2),
                      .accumulate_statistics = Accumulates(call, 3)};
  BoundKernel kernel = BindPlan<CrossEntropyGrad>(call, wanted);
  kernel.accumulates = true;
  return kernel;
}

}  // namespace syntra
#endif
