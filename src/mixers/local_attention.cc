// SPDX-License-Identifier: Apache-2.0
// Dot-product attention to the positions nearby, with T5's relative bias: position p reads the keys
// p + d k with d the dilation and |k| < radius, causal those with k <= 0 (sliding and dilated
// windows, Beltagy et al. 2020, section 3.1). Global tokens, the first of a row, read and are read
// by all. Rows are cut into blocks as long as the radius, and a block of queries reads its own
// keys, its neighbours' and those of the global tokens.
#include <algorithm>

#include "mixers/blocks.h"
#include "mixers/mixer.h"
#include "mixers/projections.h"
#include "nn/attention.h"
#include "nn/tensors.h"

namespace syntra {
namespace {

constexpr float kHidden = -1e9F;  // the score of a key outside the window

// How rows of T positions are cut into N blocks of b. With dilation d, the positions p, p + d,
// p + 2 d and so on are a row of their own. A block of queries reads S keys: those of the G global
// tokens, of the block before, of its own and of the block behind.
struct Layout {
  int64_t length, radius, dilation, globals;
  bool causal;

  int64_t row() const { return (length + dilation - 1) / dilation; }
  int64_t block() const { return std::min(radius, row()); }
  int64_t blocks() const { return (row() + block() - 1) / block(); }
  // With global tokens always: their keys then lie so far ahead of the window's that no difference
  // of places belongs to both, and the bias can tell them apart.
  int64_t before() const { return blocks() > 1 || globals > 0 ? 1 : 0; }
  int64_t after() const { return blocks() > 1 && !causal ? 1 : 0; }
  int64_t keys() const { return globals + (before() + 1 + after()) * block(); }

  // How many times the dilation a key is behind a query, from the difference of their places.
  int64_t Steps(int64_t difference) const { return difference - globals - before() * block(); }
  bool Reads(int64_t query, int64_t key) const {
    const int64_t steps = Steps(key - query);
    return key < globals || (steps > -radius && steps < (causal ? 1 : radius));
  }
};

// x [B, T, C] as [B * dilation, N, b, C].
Value Cut(const Scope& scope, const Layout& layout, Value x) {
  const int64_t block = layout.block(), dilation = layout.dilation;
  x = PadToMultiple(scope, x, block * dilation);
  const Shape shape = scope.TypeOf(x).shape;
  const int64_t columns = shape[2];
  x = Reshape(scope, x, {shape[0], layout.blocks(), block, dilation, columns});
  if (dilation > 1) x = Transpose(scope, x, {0, 3, 1, 2, 4});
  return Reshape(scope, x, {shape[0] * dilation, layout.blocks(), block, columns});
}

// What Cut has cut, as [B * dilation * N, b, C], again as [B, T, C].
Value Join(const Scope& scope, const Layout& layout, Value x) {
  const int64_t block = layout.block(), dilation = layout.dilation, blocks = layout.blocks();
  const Shape shape = scope.TypeOf(x).shape;
  const int64_t batch = shape[0] / (dilation * blocks), columns = shape[2];
  if (dilation > 1) {
    x = Reshape(scope, x, {batch, dilation, blocks, block, columns});
    x = Transpose(scope, x, {0, 2, 3, 1, 4});
  }
  x = Reshape(scope, x, {batch, blocks * block * dilation, columns});
  return First(scope, x, 1, layout.length);
}

// Each block reads its neighbours and itself.
BlockReads Neighbours(const Layout& layout) {
  BlockReads reads{layout.before() + 1 + layout.after(), {}};
  const int64_t blocks = layout.blocks();
  for (int64_t block = 0; block < blocks; ++block) {
    for (int64_t read = block - layout.before(); read <= block + layout.after(); ++read) {
      reads.blocks.push_back(static_cast<int32_t>(read < 0 ? blocks : read));
    }
  }
  return reads;
}

class LocalAttention final : public TokenMixer {
 public:
  explicit LocalAttention(const LocalAttentionConfig& config) : config_(config) {}

  MixerTraits traits() const override {
    const int64_t heads = config_.heads(), size = config_.head_size();
    const bool global = config_.global_tokens() > 0;
    return {.causal = true,
            .packed_rows = global ? PackedRows::kIndependent : PackedRows::kExact,
            .bias_heads = config_.relative_bias() ? heads : 0,
            .per_token = {{heads * size, {"local_attention.heads", "local_attention.head_size"}}}};
  }

  void Validate(const FieldReport&) const override {}

  Value Build(const Scope& scope, const MixerInput& input) const override {
    const Shape shape = scope.TypeOf(input.x).shape;
    const Layout layout{shape[1], config_.radius(), config_.dilation(),
                        std::min<int64_t>(config_.global_tokens(), shape[1]), input.causal};
    const Operands operands{.query = ProjectQuery(scope, heads(), input.x),
                            .key = ProjectKey(scope, heads(), input.x),
                            .value = ProjectValue(scope, heads(), input.x),
                            .segments = input.segments};
    std::vector<Value> parts;
    if (layout.globals > 0) parts.push_back(ReadAll(scope, layout, operands));
    if (layout.globals < layout.length) {
      const Value near = ReadNear(scope, layout, operands, input.relative_bias);
      const int64_t others = layout.length - layout.globals;
      parts.push_back(layout.globals > 0 ? Slice(scope, near, 1, layout.globals, others) : near);
    }
    return ProjectOutput(scope, Concatenate(scope, 1, parts), shape[2]);
  }

  // Remembers all keys and values; those outside the window are hidden by the bias.
  Value BuildStep(const Scope& scope, const MixerStep& step) const override {
    const Value key = Remember(scope, step, "key", ProjectKey(scope, heads(), step.x));
    const Value value = Remember(scope, step, "value", ProjectValue(scope, heads(), step.x));
    const Value mixed = Attention(scope.program(), config_.heads(),
                                  {.query = ProjectQuery(scope, heads(), step.x),
                                   .key = key,
                                   .relative_bias = StepBias(scope, step),
                                   .value = value},
                                  {.query_start = step.start, .causal = true});
    return ProjectOutput(scope, mixed, scope.TypeOf(step.x).shape[2]);
  }

 private:
  // [B, T, H * K], and segments i32 [B, T].
  struct Operands {
    Value query, key, value, segments;
  };

  Heads heads() const { return {config_.heads(), config_.head_size(), config_.dropout()}; }

  // What the global tokens get, [B, G, H * K].
  Value ReadAll(const Scope& scope, const Layout& layout, const Operands& operands) const {
    const auto own = [&](Value x) { return First(scope, x, 1, layout.globals); };
    const Value segments = AsRows(scope, operands.segments);
    return Attention(scope.program(), config_.heads(),
                     {.query = own(operands.query), .key = operands.key, .value = operands.value},
                     {.query_segments = AsSegments(scope, own(segments)),
                      .key_segments = operands.segments,
                      .causal = layout.causal});
  }

  // What every position gets from those nearby and from global tokens, [B, T, H * K].
  Value ReadNear(const Scope& scope, const Layout& layout, const Operands& operands,
                 Value bias) const {
    const BlockReads neighbours = Neighbours(layout);
    const auto queries = [&](Value x) {
      const Value cut = Cut(scope, layout, x);
      const Shape shape = scope.TypeOf(cut).shape;
      return Reshape(scope, cut, {shape[0] * shape[1], shape[2], shape[3]});
    };
    const auto keys = [&](Value x, Value near) {
      near = ReadBlocks(scope, Cut(scope, layout, near), neighbours);
      if (layout.globals == 0) return near;
      const int64_t rows = scope.TypeOf(near).shape[0];
      return Concatenate(scope, 1,
                         {ForEachBlock(scope, First(scope, x, 1, layout.globals), rows), near});
    };
    const Value segments = AsRows(scope, operands.segments);
    const Value mixed =
        Attention(scope.program(), config_.heads(),
                  {.query = queries(operands.query),
                   .key = keys(operands.key, operands.key),
                   .table = Window(scope, layout),
                   .relative_bias = bias ? BlockBias(scope, layout, bias) : Value{},
                   .value = keys(operands.value, operands.value)},
                  {.query_segments = AsSegments(scope, queries(segments)),
                   .key_segments =
                       AsSegments(scope, keys(segments, WithoutGlobals(scope, layout, segments)))});
    return Join(scope, layout, mixed);
  }

  // x [B, G, C] for each block, [rows, G, C].
  static Value ForEachBlock(const Scope& scope, Value x, int64_t rows) {
    const TensorType type = scope.TypeOf(x);
    const int64_t batch = type.shape[0], globals = type.shape[1], columns = type.shape[2];
    const Attributes::Integers shape{batch, rows / batch, globals, columns};
    x = Reshape(scope, x, {batch, 1, globals, columns});
    x = scope.One("broadcast_to", {{"shape", shape}, {"dtype", std::string(NameOf(type.dtype))}},
                  {x, {}});
    return Reshape(scope, x, {rows, globals, columns});
  }

  // Segments [B, T, 1], those of global tokens 0: nearby ones are not read a second time.
  static Value WithoutGlobals(const Scope& scope, const Layout& layout, Value segments) {
    if (layout.globals == 0) return segments;
    std::vector<float> others(layout.length, 1);
    std::fill_n(others.begin(), layout.globals, 0.0F);
    return Multiply(scope, segments,
                    scope.program().Constant({layout.length, 1}, std::move(others)));
  }

  // What is added to the scores of a block's queries and keys, [1, b, S].
  static Value Window(const Scope& scope, const Layout& layout) {
    std::vector<float> table;
    for (int64_t query = 0; query < layout.block(); ++query) {
      for (int64_t key = 0; key < layout.keys(); ++key) {
        table.push_back(layout.Reads(query, key) ? 0 : kHidden);
      }
    }
    return scope.program().Constant({1, layout.block(), layout.keys()}, std::move(table));
  }

  // The bias of a block's queries and keys, f32 [H, b + S - 1], from that of all positions,
  // [H, 2T - 1].
  static Value BlockBias(const Scope& scope, const Layout& layout, Value bias) {
    const int64_t zero = layout.length - 1;  // where the bias of a position and itself is
    const int64_t count = layout.block() + layout.keys() - 1;
    std::vector<int32_t> entries(count);
    std::vector<float> near(count);
    for (int64_t i = 0; i < count; ++i) {
      const int64_t difference = i - (layout.block() - 1);
      // Beyond the row's ends there is padding, whose bias does not matter.
      entries[i] = static_cast<int32_t>(
          std::clamp<int64_t>(zero + layout.Steps(difference) * layout.dilation, 0, 2 * zero));
      near[i] = difference < layout.globals ? 0.0F : 1.0F;
    }
    bias = scope.One("gather_rows", {{"axis", int64_t{1}}},
                     {bias, scope.program().Constant({count}, std::move(entries))});
    if (layout.globals == 0) return bias;
    return Multiply(scope, bias, scope.program().Constant({1, count}, std::move(near)));
  }

  // The bias of one query and all keys, f32 [H, length], with the window. The op relative_bias
  // knows the query's position: with a bucket for each distance within reach and one for all the
  // others, its table is the window.
  Value StepBias(const Scope& scope, const MixerStep& step) const {
    const int64_t radius = config_.radius(), dilation = config_.dilation(), heads = config_.heads();
    const int64_t reach = std::min(radius * dilation, step.length);
    std::vector<float> table(heads * 2 * reach, kHidden);
    for (int64_t head = 0; head < heads; ++head) {
      for (int64_t i = 0; i < reach; i += dilation) table[head * 2 * reach + i] = 0;
    }
    Value bias =
        scope.One("relative_bias",
                  {{"queries", int64_t{1}},
                   {"keys", step.length},
                   {"bidirectional", false},
                   {"max_distance", reach + 1}},
                  {scope.program().Constant({heads, 2 * reach}, std::move(table)), step.start});
    if (step.relative_bias) bias = Add(scope, bias, step.relative_bias);
    if (config_.global_tokens() == 0) return bias;
    std::vector<float> others(step.length, 1);
    std::fill_n(others.begin(), std::min<int64_t>(config_.global_tokens(), step.length), 0.0F);
    return Multiply(scope, bias, scope.program().Constant({1, step.length}, std::move(others)));
  }

  LocalAttentionConfig config_;
};

}  // namespace

std::unique_ptr<TokenMixer> mixer_local_attention(const MixerConfig& config) {
  return std::make_unique<LocalAttention>(config.local_attention());
}

}  // namespace syntra
