// linear_cross_entropy and its gradient over tiles of logits (see vocabulary_tiles.h). Forward:
// running log-sum-exp per token over the blocks of the vocabulary. Gradient: the logits of a tile
// are computed again and turned into dlogits with log_z; then dhidden += dlogits E and dE =
// dlogits^T hidden.
#include <limits>
#include <memory>

#include "kernels/cpu/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/linear_cross_entropy.cc"
#include "hwy/foreach_target.h"
#include "kernels/cpu/copy.h"
#include "kernels/cpu/exp-inl.h"
#include "kernels/cpu/linear_cross_entropy.h"
#include "kernels/cpu/vocabulary_tiles.h"
#include "kernels/cpu/workspace.h"

HWY_BEFORE_NAMESPACE();
namespace syntra {
namespace HWY_NAMESPACE {

void AddLogitRow(const float* logits, int64_t columns, bool with_sum, TokenSums& sums) {
  const FloatTag d;
  const FloatVector lowest = hn::Set(d, std::numeric_limits<float>::lowest());
  FloatVector largest = lowest, total = hn::Zero(d);
  const auto in_range = [&](FloatVector value, auto lanes) {
    if constexpr (std::is_same_v<decltype(lanes), Part>) {
      return hn::IfThenElse(hn::FirstN(d, lanes.count), value, lowest);
    } else {
      return value;
    }
  };
  VectorLoop(columns, [&](int64_t j, auto lanes) {
    const FloatVector value = Load(logits + j, lanes);
    largest = hn::Max(largest, in_range(value, lanes));
    total = hn::Add(total, value);
  });
  const float shift = std::max(sums.largest, hn::GetLane(hn::MaxOfLanes(d, largest)));
  FloatVector exponentials = hn::Zero(d);
  VectorLoop(columns, [&](int64_t j, auto lanes) {
    const FloatVector value = hn::Sub(Load(logits + j, lanes), hn::Set(d, shift));
    exponentials = hn::Add(exponentials, Valid(FastExp(value), lanes));
  });
  sums.exponentials = sums.exponentials * std::exp(static_cast<double>(sums.largest) - shift) +
                      SumLanes(exponentials);
  sums.largest = shift;
  if (with_sum) sums.logits += SumLanes(total);
}

// Adds a tile to its tokens' sums; tokens without a target are left out.
void AddLogits(const LogitTile& tile, bool with_sum, TokenSums* sums) {
  ParallelFor(tile.rows, 4, [&](int64_t begin, int64_t end) {
    for (int64_t row = std::max(begin, tile.repeated); row < end; ++row) {
      const int64_t token = tile.first_token + row;
      const int64_t target = tile.targets[token] - tile.first_column;
      if (tile.targets[token] <= 0) continue;
      const float* logits = tile.logits + row * tile.columns;
      if (target >= 0 && target < tile.columns) sums[token].target_logit = logits[target];
      AddLogitRow(logits, tile.columns, with_sum, sums[token]);
    }
  });
}

// Turns a tile of logits into dlogits, stored as T (f32: in place).
template <typename T>
void DlogitRows(const LogitTile& tile, const float* log_z, const DlogitFactors& factors,
                T* dlogits) {
  ParallelFor(tile.rows, 4, [&](int64_t begin, int64_t end) {
    const FloatTag d;
    for (int64_t row = begin; row < end; ++row) {
      const int64_t token = tile.first_token + row;
      const int64_t target = tile.targets[token] - tile.first_column;
      float* logits = tile.logits + row * tile.columns;
      T* to = dlogits + row * tile.columns;
      if (tile.targets[token] <= 0 || row < tile.repeated) {
        std::memset(to, 0, tile.columns * sizeof(T));
        continue;
      }
      const FloatVector share =
          hn::Set(d, factors.factor * (1.0f + 2.0f * factors.z_loss * log_z[token]));
      const FloatVector shift = hn::Set(d, log_z[token]), smoothed = hn::Set(d, factors.smoothed);
      const auto dlogit = [&](FloatVector logit) {
        return hn::MulSub(share, FastExp(hn::Sub(logit, shift)), smoothed);
      };
      const bool has_target = target >= 0 && target < tile.columns;
      const float target_logit = has_target ? logits[target] : 0.0f;
      VectorLoop(tile.columns, [&](int64_t j, auto lanes) {
        Store(dlogit(Load(logits + j, lanes)), to + j, lanes);
      });
      if (has_target) {
        const FloatVector value = dlogit(hn::Set(d, target_logit));
        Store(hn::Sub(value, hn::Set(d, factors.target_share)), to + target, Part{1});
      }
    }
  });
}

void FormDlogits(const LogitTile& tile, const float* log_z, const DlogitFactors& factors,
                 BFloat16* rounded) {
  if (rounded != nullptr) {
    DlogitRows(tile, log_z, factors, rounded);
  } else {
    DlogitRows(tile, log_z, factors, tile.logits);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace syntra
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace syntra {

HWY_EXPORT(AddLogits);
HWY_EXPORT(FormDlogits);

namespace {

void CheckTargets(const int32_t* targets, const Projection& projection) {
  for (int64_t i = 0; i < projection.tokens; ++i) {
    SYNTRA_CHECK(targets[i] < projection.vocabulary, "target {} outside a vocabulary of {}",
                 targets[i], projection.vocabulary);
  }
}

struct Loss {
  double z_loss, label_smoothing;
};

class CrossEntropy {
 public:
  CrossEntropy(const Projection& projection, const Loss& loss)
      : tiles_(projection), rows_(tiles_), products_(tiles_), loss_(loss) {
    WorkspaceLayout layout;
    rounded_ = layout.Place(rows_.workspace_bytes());
    packed_ = layout.Place(products_.packed_bytes());
    logits_ = layout.Place(tiles_.chunk_rows() * tiles_.largest_block() * sizeof(float));
    sums_ = layout.Place(projection.tokens * sizeof(TokenSums));
    scratch_ = layout.Place(products_.workspace_bytes());
    workspace_bytes_ = layout.bytes();
  }

  size_t workspace_bytes() const { return workspace_bytes_; }
  void Run(const KernelArguments& arguments) const;

 private:
  void SumTiles(const KernelArguments& arguments, TokenSums* sums) const;

  VocabularyTiles tiles_;
  BlockRows rows_;
  LogitProducts products_;
  Loss loss_;
  size_t rounded_, packed_, logits_, sums_, scratch_, workspace_bytes_;
};

void CrossEntropy::SumTiles(const KernelArguments& arguments, TokenSums* sums) const {
  const Projection& projection = tiles_.projection();
  const auto* hidden = Input<std::byte>(arguments, 0);
  const auto* embedding = Input<float>(arguments, 1);
  std::byte* workspace = arguments.workspace;
  LogitTile tile{};
  tile.logits = reinterpret_cast<float*>(workspace + logits_);
  tile.rows = tiles_.chunk_rows();
  tile.targets = Input<int32_t>(arguments, 2);
  for (int64_t block = 0; block < tiles_.block_count(); ++block) {
    tile.columns = tiles_.block_columns(block);
    tile.first_column = tiles_.block_first(block);
    const std::byte* rows = rows_.Get(embedding, block, workspace + rounded_);
    products_.Prepare(rows, block, workspace + packed_, workspace + scratch_);
    for (int64_t i = 0; i < tiles_.chunk_count(); ++i) {
      const TokenChunk chunk = tiles_.chunk(i);
      tile.first_token = chunk.first;
      tile.repeated = chunk.repeated;
      products_.Run(hidden + chunk.first * projection.width * SizeOf(projection.dtype), rows, block,
                    workspace + packed_, tile.logits, workspace + scratch_);
      HWY_DYNAMIC_DISPATCH(AddLogits)(tile, loss_.label_smoothing > 0.0, sums);
    }
  }
}

void CrossEntropy::Run(const KernelArguments& arguments) const {
  const Projection& projection = tiles_.projection();
  const auto* targets = Input<int32_t>(arguments, 2);
  CheckTargets(targets, projection);
  auto* sums = reinterpret_cast<TokenSums*>(arguments.workspace + sums_);
  std::fill_n(sums, projection.tokens,
              TokenSums{std::numeric_limits<float>::lowest(), 0.0f, 0.0, 0.0});
  SumTiles(arguments, sums);
  float* log_z = Output<float>(arguments, 2);
  const double smoothing = loss_.label_smoothing;
  double total = 0.0, negative_log_likelihood = 0.0, z_terms = 0.0, tokens = 0.0;
  for (int64_t i = 0; i < projection.tokens; ++i) {
    if (log_z != nullptr) log_z[i] = 0.0f;
    if (targets[i] <= 0) continue;
    const double log_sum = sums[i].largest + std::log(sums[i].exponentials);
    const double expected = (1.0 - smoothing) * sums[i].target_logit +
                            smoothing / static_cast<double>(projection.vocabulary) * sums[i].logits;
    const double z_term = loss_.z_loss * log_sum * log_sum;
    total += log_sum - expected + z_term;
    negative_log_likelihood += log_sum - sums[i].target_logit;
    z_terms += z_term;
    tokens += 1.0;
    if (log_z != nullptr) log_z[i] = static_cast<float>(log_sum);
  }
  if (float* loss = Output<float>(arguments, 0)) {
    *loss = static_cast<float>(Input<float>(arguments, 3)[0] * total);
  }
  if (float* statistics = Output<float>(arguments, 1)) {
    statistics[0] = static_cast<float>(negative_log_likelihood);
    statistics[1] = static_cast<float>(z_terms);
    statistics[2] = static_cast<float>(tokens);
  }
}

struct Wanted {
  bool dhidden, dembedding;
  bool accumulate_dhidden, accumulate_dembedding;
};

// dlogits chunk x embedding block -> dhidden, and dlogits^T x hidden -> dembedding.
struct GradientProducts {
  std::array<PackedGemm, 2> dhidden;     // adds
  std::array<Gemm, 2> dembedding_first;  // of the first chunk of tokens
  std::array<Gemm, 2> dembedding_next;   // adds
  size_t packed_bytes = 0, workspace_bytes = 0;

  GradientProducts(const VocabularyTiles& tiles, const Wanted& wanted) {
    for (int variant = tiles.first_variant(); variant < 2; ++variant) {
      if (wanted.dhidden) BindDhidden(tiles, variant);
      if (wanted.dembedding) BindDembedding(tiles, wanted.accumulate_dembedding, variant);
    }
  }

 private:
  void BindDhidden(const VocabularyTiles& tiles, int variant);
  void BindDembedding(const VocabularyTiles& tiles, bool accumulate, int variant);
};

void GradientProducts::BindDhidden(const VocabularyTiles& tiles, int variant) {
  GemmProblem problem;
  problem.m = tiles.chunk_rows();
  problem.n = tiles.projection().width;
  problem.k = tiles.variant_columns(variant);
  problem.ab = tiles.projection().dtype;
  problem.accumulate = true;
  PackedGemm& gemm = dhidden[variant];
  gemm = PackedGemm(problem, problem.ab, GemmThreads::kPool);
  packed_bytes = std::max(packed_bytes, gemm.packed_bytes());
  workspace_bytes = std::max(workspace_bytes, gemm.workspace_bytes());
}

void GradientProducts::BindDembedding(const VocabularyTiles& tiles, bool accumulate, int variant) {
  GemmProblem problem;
  problem.transpose_a = true;
  problem.m = tiles.variant_columns(variant);
  problem.n = tiles.projection().width;
  problem.k = tiles.chunk_rows();
  problem.ab = tiles.projection().dtype;
  problem.accumulate = accumulate;
  dembedding_first[variant] = Gemm(problem, GemmThreads::kPool);
  workspace_bytes = std::max(workspace_bytes, dembedding_first[variant].workspace_bytes());
  if (tiles.chunk_count() == 1) return;
  problem.accumulate = true;
  dembedding_next[variant] = Gemm(problem, GemmThreads::kPool);
  workspace_bytes = std::max(workspace_bytes, dembedding_next[variant].workspace_bytes());
}

class CrossEntropyGrad {
 public:
  CrossEntropyGrad(const Projection& projection, const Loss& loss, const Wanted& wanted);

  size_t workspace_bytes() const { return workspace_bytes_; }
  void Run(const KernelArguments& arguments) const;

 private:
  bool bf16() const { return tiles_.projection().dtype == DType::kBF16; }
  DlogitFactors FactorsOf(const KernelArguments& arguments) const;
  void RunBlock(const KernelArguments& arguments, const DlogitFactors& factors, int64_t block,
                float* dhidden) const;
  void RunChunk(const KernelArguments& arguments, int64_t block, int64_t chunk,
                const LogitTile& tile, float* dhidden) const;

  VocabularyTiles tiles_;
  BlockRows rows_;
  LogitProducts logit_products_;
  GradientProducts gradient_products_;
  Loss loss_;
  Wanted wanted_;
  std::function<void(const KernelArguments&)> round_dhidden_;
  size_t rounded_, packed_, packed_rows_, logits_, dlogits_, dhidden_, scratch_, workspace_bytes_;
};

CrossEntropyGrad::CrossEntropyGrad(const Projection& projection, const Loss& loss,
                                   const Wanted& wanted)
    : tiles_(projection),
      rows_(tiles_),
      logit_products_(tiles_),
      gradient_products_(tiles_, wanted),
      loss_(loss),
      wanted_(wanted) {
  const int64_t tile = tiles_.chunk_rows() * tiles_.largest_block();
  const Shape hidden{projection.tokens, projection.width};
  WorkspaceLayout layout;
  rounded_ = layout.Place(rows_.workspace_bytes());
  packed_ = layout.Place(logit_products_.packed_bytes());
  packed_rows_ = layout.Place(gradient_products_.packed_bytes);
  logits_ = layout.Place(tile * sizeof(float));
  dlogits_ = layout.Place(bf16() ? tile * sizeof(BFloat16) : 0);
  dhidden_ = layout.Place(bf16() && wanted.dhidden ? hidden.size() * sizeof(float) : 0);
  scratch_ =
      layout.Place(std::max(logit_products_.workspace_bytes(), gradient_products_.workspace_bytes));
  workspace_bytes_ = layout.bytes();
  if (bf16()) {
    round_dhidden_ = cpu_copy({.inputs = {{DType::kF32, hidden}},
                               .outputs = {{DType::kBF16, hidden}},
                               .accumulate = {wanted.accumulate_dhidden}})
                         ->run;
  }
}

DlogitFactors CrossEntropyGrad::FactorsOf(const KernelArguments& arguments) const {
  const Projection& projection = tiles_.projection();
  const double factor = static_cast<double>(projection.scale) * Input<float>(arguments, 3)[0] *
                        Input<float>(arguments, 5)[0];
  return {static_cast<float>(factor), static_cast<float>(loss_.z_loss),
          static_cast<float>(factor * loss_.label_smoothing /
                             static_cast<double>(projection.vocabulary)),
          static_cast<float>(factor * (1.0 - loss_.label_smoothing))};
}

void CrossEntropyGrad::Run(const KernelArguments& arguments) const {
  const Projection& projection = tiles_.projection();
  CheckTargets(Input<int32_t>(arguments, 2), projection);
  const DlogitFactors factors = FactorsOf(arguments);
  float* dhidden = bf16() ? reinterpret_cast<float*>(arguments.workspace + dhidden_)
                          : Output<float>(arguments, 0);
  if (wanted_.dhidden && (bf16() || !wanted_.accumulate_dhidden)) {
    std::fill_n(dhidden, projection.tokens * projection.width, 0.0f);
  }
  for (int64_t block = 0; block < tiles_.block_count(); ++block) {
    RunBlock(arguments, factors, block, dhidden);
  }
  if (wanted_.dhidden && bf16()) {
    void* sum = dhidden;
    round_dhidden_(
        {.inputs = {&sum, 1}, .outputs = arguments.outputs.first(1), .workspace = nullptr});
  }
}

void CrossEntropyGrad::RunBlock(const KernelArguments& arguments, const DlogitFactors& factors,
                                int64_t block, float* dhidden) const {
  const Projection& projection = tiles_.projection();
  const auto* hidden = Input<std::byte>(arguments, 0);
  std::byte *workspace = arguments.workspace, *scratch = workspace + scratch_;
  auto* rounded = bf16() ? reinterpret_cast<BFloat16*>(workspace + dlogits_) : nullptr;
  const std::byte* rows = rows_.Get(Input<float>(arguments, 1), block, workspace + rounded_);
  logit_products_.Prepare(rows, block, workspace + packed_, scratch);
  if (wanted_.dhidden) {
    gradient_products_.dhidden[tiles_.variant(block)].Pack(rows, workspace + packed_rows_, scratch);
  }
  LogitTile tile{};
  tile.logits = reinterpret_cast<float*>(workspace + logits_);
  tile.rows = tiles_.chunk_rows();
  tile.targets = Input<int32_t>(arguments, 2);
  tile.columns = tiles_.block_columns(block);
  tile.first_column = tiles_.block_first(block);
  for (int64_t i = 0; i < tiles_.chunk_count(); ++i) {
    const TokenChunk chunk = tiles_.chunk(i);
    tile.first_token = chunk.first;
    tile.repeated = chunk.repeated;
    logit_products_.Run(hidden + chunk.first * projection.width * SizeOf(projection.dtype), rows,
                        block, workspace + packed_, tile.logits, scratch);
    HWY_DYNAMIC_DISPATCH(FormDlogits)(tile, Input<float>(arguments, 4), factors, rounded);
    RunChunk(arguments, block, i, tile, dhidden);
  }
}

// The two products of a tile's dlogits.
void CrossEntropyGrad::RunChunk(const KernelArguments& arguments, int64_t block, int64_t chunk,
                                const LogitTile& tile, float* dhidden) const {
  const Projection& projection = tiles_.projection();
  const int variant = tiles_.variant(block);
  std::byte *workspace = arguments.workspace, *scratch = workspace + scratch_;
  const void* dlogits = bf16() ? static_cast<const void*>(workspace + dlogits_) : tile.logits;
  const int64_t first_element = tile.first_token * projection.width;
  if (wanted_.dhidden) {
    gradient_products_.dhidden[variant].Run(dlogits, workspace + packed_rows_,
                                            dhidden + first_element, scratch);
  }
  if (wanted_.dembedding) {
    const auto* hidden = Input<std::byte>(arguments, 0);
    const Gemm& gemm = chunk == 0 ? gradient_products_.dembedding_first[variant]
                                  : gradient_products_.dembedding_next[variant];
    gemm.Run(dlogits, hidden + first_element * SizeOf(projection.dtype),
             Output<float>(arguments, 1) + tile.first_column * projection.width, scratch);
  }
}

std::optional<Projection> ProjectionOf(const OpCall& call) {
  const TensorType &hidden = call.inputs[0], &embedding = call.inputs[1];
  if (!IsActivation(hidden) || !IsF32(embedding)) return std::nullopt;
  return Projection{hidden.shape.rows(), hidden.shape[-1], embedding.shape[0], hidden.dtype,
                    static_cast<float>(call.attributes.Number("scale"))};
}

Loss LossOf(const OpCall& call) {
  return {call.attributes.Number("z_loss"), call.attributes.Number("label_smoothing")};
}

}  // namespace

std::optional<BoundKernel> cpu_linear_cross_entropy(const OpCall& call) {
  const std::optional<Projection> projection = ProjectionOf(call);
  if (!projection) return std::nullopt;
  const auto plan = std::make_shared<const CrossEntropy>(*projection, LossOf(call));
  BoundKernel kernel;
  kernel.workspace_bytes = plan->workspace_bytes();
  kernel.run = [plan](const KernelArguments& arguments) { plan->Run(arguments); };
  return kernel;
}

std::optional<BoundKernel> cpu_linear_cross_entropy_grad(const OpCall& call) {
  const std::optional<Projection> projection = ProjectionOf(call);
  if (!projection) return std::nullopt;
  const auto plan = std::make_shared<const CrossEntropyGrad>(
      *projection, LossOf(call),
      Wanted{call.outputs[0].present(), call.outputs[1].present(), Accumulates(call, 0),
             Accumulates(call, 1)});
  BoundKernel kernel;
  kernel.accumulates = true;
  kernel.workspace_bytes = plan->workspace_bytes();
  kernel.run = [plan](const KernelArguments& arguments) { plan->Run(arguments); };
  return kernel;
}

}  // namespace syntra
#endif
