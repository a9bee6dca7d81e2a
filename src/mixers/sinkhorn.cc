// SPDX-License-Identifier: Apache-2.0
// Sparse Sinkhorn attention (Tay et al. 2020, "Sparse Sinkhorn Attention", section 3): a block of
// queries reads its own keys and those that a learned sorting of the blocks puts in their place.
// The sorting is soft: each place holds a weighted sum of blocks, where nothing is causal of all of
// them, else of those before. The sorting network has one layer.
#include <cmath>

#include "mixers/blocks.h"
#include "mixers/mixer.h"
#include "mixers/projections.h"
#include "nn/attention.h"
#include "nn/layers.h"
#include "nn/tensors.h"

namespace syntra {
namespace {

// Added to every weight before rows and columns are normalised, so that none of their sums
// vanishes.
constexpr double kLeast = 1e-12;
constexpr float kLaterKey = -1e9F;  // the score of a later key of the own block

class Sinkhorn final : public TokenMixer {
 public:
  explicit Sinkhorn(const SinkhornConfig& config) : config_(config) {}

  MixerTraits traits() const override {
    const int64_t heads = config_.heads(), size = config_.head_size();
    return {.causal = true,
            .prefills = true,
            .sees_order = false,
            .limits = {LengthLimit::OfMaxLength(config_.max_length())},
            .per_token = {{heads * size, {"heads", "head_size"}}},
            .stochastic = config_.gumbel_noise()};
  }

  Value Build(const Scope& scope, const MixerInput& input) const override {
    const Shape shape = scope.TypeOf(input.x).shape;
    SYNTRA_CHECK(shape[1] <= config_.max_length(), "{} positions for blocks of {}", shape[1],
                 config_.max_length());
    const Value x = WithoutPadding(scope, input.x, input.segments);
    const Value there = NotZero(scope, input.segments);
    const Value mask = Blocks(scope, Reshape(scope, there, {shape[0], shape[1], 1}));
    const Value readable = Readable(scope, mask, input.causal);
    const Value sorting = Sorting(scope, x, readable, input.causal);
    const Value query = InBlocks(scope, ProjectQuery(scope, HeadsOf(config_), input.x));
    const Value key = ProjectKey(scope, HeadsOf(config_), x);
    const Value value = ProjectValue(scope, HeadsOf(config_), x);
    Remember(scope, input, "input", x);
    Remember(scope, input, "key", key);
    Remember(scope, input, "value", value);
    const auto both = [&](Value x) {
      x = InBlocks(scope, x);
      return Concatenate(
          scope, 1,
          {Own(scope, x), Own(scope, BatchProduct(scope, sorting, x, scope.TypeOf(x).dtype))});
    };
    // A place is padding where all blocks that can be in it have padding.
    const Value places =
        NotZero(scope, BatchProduct(scope, readable, mask, scope.TypeOf(mask).dtype));
    const Value keys = Concatenate(scope, 1, {OfHeads(scope, mask), OfHeads(scope, places)});
    const Value mixed = Attention(scope, 1,
                                  {.query = Own(scope, query),
                                   .key = both(key),
                                   .table = input.causal ? Triangle(scope) : Value{},
                                   .value = both(value)},
                                  {.query_segments = AsSegments(scope, OfHeads(scope, mask)),
                                   .key_segments = AsSegments(scope, keys)});
    return Output(scope, mixed, shape);
  }

  // Remembers the inputs of all positions, which sort, and their keys and values.
  Value BuildStep(const Scope& scope, const MixerStep& step) const override {
    const int64_t batch = scope.TypeOf(step.x).shape[0], count = config_.heads();
    const Value mask =
        Blocks(scope, scope.program().FillConstant({DType::kF32, {batch, step.length, 1}}, 1));
    const Value x = Remember(scope, step, "input", step.x);
    const Value block = BlockOf(scope, step);
    const auto of_block = [&](Value x) { return GatherRows(scope, x, 2, block); };
    const Value row = of_block(Sorting(scope, x, Readable(scope, mask, true), true));
    const auto both = [&](const char* name, Value projected) {
      const Value all = InBlocks(scope, Remember(scope, step, name, projected));
      return Concatenate(scope, 1,
                         {Own(scope, of_block(all)),
                          Own(scope, BatchProduct(scope, row, all, scope.TypeOf(all).dtype))});
    };
    const Value query = ProjectQuery(scope, HeadsOf(config_), step.x);
    const Value mixed =
        Attention(scope, 1,
                  {.query = Reshape(scope, query, {batch * count, 1, config_.head_size()}),
                   .key = both("key", ProjectKey(scope, HeadsOf(config_), step.x)),
                   .relative_bias = StepBias(scope, step),
                   .value = both("value", ProjectValue(scope, HeadsOf(config_), step.x))},
                  {});
    return Output(scope, mixed, scope.TypeOf(step.x).shape);
  }

 private:
  // [B, T, C] as [B, N, b * C].
  Value Blocks(const Scope& scope, Value x) const {
    const int64_t size = config_.block_size();
    x = PadToMultiple(scope, x, size);
    const Shape shape = scope.TypeOf(x).shape;
    return Reshape(scope, x, {shape[0], shape[1] / size, size * shape[2]});
  }

  // [B, T, H * K] as [B, H, N, b * K].
  Value InBlocks(const Scope& scope, Value x) const {
    const int64_t size = config_.block_size(), count = config_.heads();
    x = PadToMultiple(scope, x, size);
    const Shape shape = scope.TypeOf(x).shape;
    x = Transpose(scope, InHeads(scope, x, count), {0, 2, 1, 3});
    return Reshape(scope, x, {shape[0], count, shape[1] / size, size * shape[2] / count});
  }

  // [B, H, N, b * C] as [B * H * N, b, C].
  Value Own(const Scope& scope, Value x) const {
    const Shape shape = scope.TypeOf(x).shape;
    const int64_t size = config_.block_size();
    return Reshape(scope, x, {shape[0] * shape[1] * shape[2], size, shape[3] / size});
  }

  // A mask [B, N, b] as that of every head, [B * H * N, b, 1].
  Value OfHeads(const Scope& scope, Value mask) const {
    const Shape shape = scope.TypeOf(mask).shape;
    mask = Reshape(scope, mask, {shape[0], 1, shape[1], shape[2]});
    return Own(scope, BroadcastTo(scope, mask,
                                  {DType::kF32, {shape[0], config_.heads(), shape[1], shape[2]}}));
  }

  // [B * H * N, b, K], or in a step [B * H, 1, K], through the output projection; `shape` is
  // [B, T, D].
  Value Output(const Scope& scope, Value x, const Shape& shape) const {
    const int64_t count = config_.heads(), width = config_.head_size();
    const int64_t length = scope.TypeOf(x).shape.size() / (shape[0] * count * width);
    x = Transpose(scope, Reshape(scope, x, {shape[0], count, length, width}), {0, 2, 1, 3});
    return ProjectOutput(scope, First(scope, Joined(scope, x), 1, shape[1]), shape[2]);
  }

  // 1 where block j can be in the place of block i, f32 [B, N, N]: neither is padding and, if
  // causal, j < i. `mask` [B, N, b] is 1, or 0 for padding.
  Value Readable(const Scope& scope, Value mask, bool causal) const {
    const Shape shape = scope.TypeOf(mask).shape;
    const int64_t batch = shape[0], blocks = shape[1];
    const Value there = NotZero(scope, SumTo(scope, mask, {batch, blocks, 1}));
    const Value both = Multiply(scope, there, Reshape(scope, there, {batch, 1, blocks}));
    if (!causal) return both;
    std::vector<float> before(blocks * blocks);
    for (int64_t i = 0; i < blocks; ++i) std::fill_n(before.begin() + i * blocks, i, 1.0F);
    return Multiply(scope, both, scope.program().Constant({blocks, blocks}, std::move(before)));
  }

  // How much of block j lies in the place of block i, f32 [B, H, N, N]; zero where it cannot.
  Value Sorting(const Scope& scope, Value x, Value readable, bool causal) const {
    const Shape shape = scope.TypeOf(readable).shape;
    const int64_t batch = shape[0], blocks = shape[1];
    readable = Reshape(scope, readable, {batch, 1, blocks, blocks});
    const Value logits = AffineMap(scope, Logits(scope, x, causal), 1 / config_.temperature(), 0);
    const Value hidden = AffineMap(scope, readable, 1e9, -1e9);
    Value sorting = scope.One("softmax", {}, {Add(scope, logits, hidden)});
    sorting = Multiply(scope, AffineMap(scope, sorting, 1, kLeast), readable);
    const Value floor = AffineMap(scope, readable, -1, 1);  // of sums of nothing
    const auto over = [&](Value sums) {
      return Multiply(scope, sorting, Activation(scope, "reciprocal", Add(scope, sums, floor)));
    };
    const int64_t count = config_.heads();
    for (int i = 0; i < config_.iterations(); ++i) {
      // A row of a causal sorting must not depend on those after it, so its sums end with it.
      sorting =
          over(causal ? scope.One("cumulative_sum",
                                  {{"axis", int64_t{2}}, {"reverse", false}, {"exclusive", false}},
                                  {sorting})
                      : SumTo(scope, sorting, {batch, count, 1, blocks}));
      sorting = over(SumTo(scope, sorting, {batch, count, blocks, 1}));
    }
    return sorting;
  }

  // The sorting network: a linear map of the sums of the blocks' vectors, causal of those of all
  // blocks before. f32 [B, H, N, N].
  Value Logits(const Scope& scope, Value x, bool causal) const {
    const int64_t size = config_.block_size(), count = config_.heads();
    const int64_t most = (config_.max_length() - 1) / size + 1;
    const TensorType type = scope.TypeOf(x);
    const int64_t batch = type.shape[0], width = type.shape[2];
    x = Blocks(scope, x);
    const int64_t blocks = scope.TypeOf(x).shape[1];
    Value sums =
        SumTo(scope, Reshape(scope, x, {batch, blocks, size, width}), {batch, blocks, 1, width});
    sums = Cast(scope, Reshape(scope, sums, {batch, blocks, width}), type.dtype);
    if (causal) {
      sums = scope.One("cumulative_sum",
                       {{"axis", int64_t{1}}, {"reverse", false}, {"exclusive", true}}, {sums});
    }
    const double deviation = 1 / std::sqrt(static_cast<double>(width * size));
    Value logits = Linear(scope, "sorting", sums, count * most, Initializer::Normal(deviation));
    logits = Cast(scope, logits, DType::kF32);
    logits = Transpose(scope, Reshape(scope, logits, {batch, blocks, count, most}), {0, 2, 1, 3});
    logits = First(scope, logits, 3, blocks);
    if (!config_.gumbel_noise() || !scope.recording().training) return logits;
    return Add(scope, logits, GumbelNoise(scope, {batch, count, most, most}, blocks));
  }

  // -log(-log(u)) for the first blocks of the most: how far rows are padded changes no draw.
  static Value GumbelNoise(const Scope& scope, const Shape& most, int64_t blocks) {
    const Value all = UniformNoise(scope, most);
    const Value uniform = First(scope, First(scope, all, 2, blocks), 3, blocks);
    const auto minus_log = [&](Value x) {
      return AffineMap(scope, Activation(scope, "log", x), -1);
    };
    return minus_log(minus_log(uniform));
  }

  // The mask that hides later keys of the query's own block, [1, b, 2 b].
  Value Triangle(const Scope& scope) const {
    const int64_t size = config_.block_size();
    std::vector<float> table(size * 2 * size);
    for (int64_t i = 0; i < size; ++i) {
      std::fill_n(table.begin() + i * 2 * size + i + 1, size - i - 1, kLaterKey);
    }
    return scope.program().Constant({1, size, 2 * size}, std::move(table));
  }

  // The block of a step's position, i32 [1].
  Value BlockOf(const Scope& scope, const MixerStep& step) const {
    std::vector<float> blocks(step.length);
    for (int64_t i = 0; i < step.length; ++i) {
      blocks[i] = static_cast<float>(i / config_.block_size());
    }
    const Value block = GatherRows(
        scope, scope.program().Constant({step.length}, std::move(blocks)), 0, step.start);
    return Cast(scope, block, DType::kI32);
  }

  // The mask that hides keys in a step: later keys of the own block and, in the first block, the
  // other block.
  Value StepBias(const Scope& scope, const MixerStep& step) const {
    const int64_t size = config_.block_size();
    std::vector<float> table(step.length * 2 * size);
    for (int64_t i = 0; i < step.length; ++i) {
      const int64_t place = i % size, end = i < size ? 2 * size : size;
      std::fill(table.begin() + i * 2 * size + place + 1, table.begin() + i * 2 * size + end,
                kLaterKey);
    }
    return GatherRows(scope, scope.program().Constant({step.length, 2 * size}, std::move(table)), 0,
                      step.start);
  }

  SinkhornConfig config_;
};

}  // namespace

std::unique_ptr<TokenMixer> mixer_sinkhorn(const MixerConfig& config) {
  return std::make_unique<Sinkhorn>(config.sinkhorn());
}

}  // namespace syntra
