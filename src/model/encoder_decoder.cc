// SPDX-License-Identifier: Apache-2.0
#include "model/encoder_decoder.h"

#include <cmath>

#include "nn/attention.h"
#include "nn/layers.h"

namespace syntra {
namespace {

std::string LayerName(int layer) { return fmt::format("layer_{:02}", layer); }

Value CrossProjection(const Scope& scope, const char* name, Value x,
                      const CrossAttentionConfig& config, double deviation) {
  return Linear(scope, name, x,
                {int64_t{config.heads()} * config.head_size(),
                 {"embed", "joined_kv"},
                 Initializer::Normal(deviation)});
}

struct CrossKeys {
  Value key, value;
};

CrossKeys ProjectMemory(const Scope& scope, Value hidden, const CrossAttentionConfig& config) {
  const double deviation = 1 / std::sqrt(static_cast<double>(scope.TypeOf(hidden).shape[-1]));
  return {CrossProjection(scope, "key", hidden, config, deviation),
          CrossProjection(scope, "value", hidden, config, deviation)};
}

// `x` [B, T, D] in `rows` rows.
Value InRows(const Scope& scope, Value x, int64_t rows) {
  const Shape shape = scope.TypeOf(x).shape;
  if (shape[0] == rows) return x;
  const Attributes::Integers in_rows = {rows, shape.rows() / rows, shape[-1]};
  return scope.One("reshape", {{"shape", in_rows}}, {x});
}

// Segments i32 [B, W * T] of B * W rows that are not packed. Padding behind a row's end may attend
// to the memory, too: nobody reads what it gets.
Value OneSegment(const Scope& scope, Value x, Value memory_segments) {
  const int64_t memory_rows = scope.TypeOf(memory_segments).shape[0];
  const Shape rows = scope.TypeOf(x).shape;
  return scope.program().FillConstant({DType::kI32, {memory_rows, rows[0] * rows[1] / memory_rows}},
                                      1);
}

// Dot-product attention of decoder positions to encoder positions. Several rows that attend to one
// row of the memory are laid side by side as its queries, so that nothing of it is repeated;
// `segments` are those of the queries as they lie then.
Value CrossAttention(const Scope& scope, Value x, const CrossKeys& memory, Value segments,
                     Value memory_segments, const CrossAttentionConfig& config) {
  const Shape rows = scope.TypeOf(x).shape;
  const int64_t width = rows[-1];
  const int64_t inner = int64_t{config.heads()} * config.head_size();
  const Value query = CrossProjection(
      scope, "query", x, config, 1 / std::sqrt(static_cast<double>(width) * config.head_size()));
  const Value value = HeadDropout(scope, memory.value, config.dropout(), config.head_size());
  const Value side_by_side = InRows(scope, query, scope.TypeOf(memory_segments).shape[0]);
  const Value attended = Attention(scope.program(), config.heads(),
                                   {.query = side_by_side, .key = memory.key, .value = value},
                                   {.query_segments = segments, .key_segments = memory_segments});
  const Value mixed = InRows(scope, attended, rows[0]);
  return Linear(scope, "output", mixed,
                {width,
                 {"joined_kv", "embed"},
                 Initializer::Normal(1 / std::sqrt(static_cast<double>(inner)))});
}

void CheckLength(const char* stack, const TokenMixer& mixer, int64_t length) {
  const std::optional<int64_t> longest = mixer.traits().MaxLength();
  if (longest && length > *longest) {
    Fail(ExitCode::kConfig,
         "the {}'s mixer has tables for {} positions, but sequences have {}; raise max_length or "
         "shorten the data",
         stack, *longest, length);
  }
}

}  // namespace

EncoderDecoder::EncoderDecoder(const ModelConfig& config)
    : config_(config),
      encoder_mixer_(MakeMixer(config.mixer())),
      decoder_mixer_(
          MakeMixer(config.has_decoder_mixer() ? config.decoder_mixer() : config.mixer())) {
  if (!decoder_mixer_->traits().causal) {
    Fail(ExitCode::kConfig, "the decoder's mixer cannot hide later positions; set decoder_mixer");
  }
}

Value EncoderDecoder::EmbeddingTable(const Scope& root) const {
  return root.Parameter("embedding", {config_.vocabulary_size(), config_.width()},
                        {"vocabulary", "embed"}, Initializer::Normal(1));
}

Value EncoderDecoder::Embed(const Scope& root, Value ids) const {
  return syntra::Embed(root, EmbeddingTable(root), ids);
}

Value EncoderDecoder::RelativeBias(const Scope& stack, const TokenMixer& mixer,
                                   const BiasExtent& extent) const {
  const int64_t heads = mixer.traits().bias_heads;
  if (heads == 0) return {};
  return syntra::RelativeBias(stack, "relative_bias", config_.relative_bias(), heads, extent);
}

Value EncoderDecoder::Encode(const Scope& root, const StackInput& input, bool recompute) const {
  const Scope stack = root / "encoder";
  const int64_t length = root.TypeOf(input.embedded).shape[1];
  CheckLength("encoder", *encoder_mixer_, length);
  const Value bias = RelativeBias(stack, *encoder_mixer_, {length, length, false});
  ResidualStream stream(input.embedded, config_.dropout(), config_.norm_epsilon());
  for (int i = 0; i < config_.encoder_layers(); ++i) {
    const Scope layer = stack / LayerName(i);
    root.program().Region(recompute, [&] {
      const Scope mixer = layer / "mixer";
      stream.Add(encoder_mixer_->Build(mixer, {.x = stream.Norm(mixer),
                                               .segments = input.segments,
                                               .positions = input.positions,
                                               .relative_bias = bias,
                                               .causal = false}));
      const Scope feed_forward = layer / "feed_forward";
      stream.Add(FeedForward(feed_forward, stream.Norm(feed_forward), config_.feed_forward(),
                             config_.dropout()));
    });
  }
  return Dropout(stack, stream.Norm(stack), config_.dropout());
}

Value EncoderDecoder::Decode(const Scope& root, const StackInput& input, const Memory& memory,
                             bool recompute) const {
  const Scope stack = root / "decoder";
  const int64_t length = root.TypeOf(input.embedded).shape[1];
  CheckLength("decoder", *decoder_mixer_, length);
  const Value bias = RelativeBias(stack, *decoder_mixer_, {length, length, true});
  const bool one_to_one =
      root.TypeOf(input.embedded).shape[0] == root.TypeOf(memory.hidden).shape[0];
  const Value cross_segments =
      one_to_one ? input.segments : OneSegment(root, input.embedded, memory.segments);
  ResidualStream stream(input.embedded, config_.dropout(), config_.norm_epsilon());
  for (int i = 0; i < config_.decoder_layers(); ++i) {
    const Scope layer = stack / LayerName(i);
    root.program().Region(recompute, [&] {
      const Scope mixer = layer / "mixer";
      stream.Add(decoder_mixer_->Build(mixer, {.x = stream.Norm(mixer),
                                               .segments = input.segments,
                                               .positions = input.positions,
                                               .relative_bias = bias,
                                               .causal = true}));
      const Scope cross = layer / "cross_attention";
      const Value x = stream.Norm(cross);
      stream.Add(CrossAttention(cross, x,
                                ProjectMemory(cross, memory.hidden, config_.cross_attention()),
                                cross_segments, memory.segments, config_.cross_attention()));
      const Scope feed_forward = layer / "feed_forward";
      stream.Add(FeedForward(feed_forward, stream.Norm(feed_forward), config_.feed_forward(),
                             config_.dropout()));
    });
  }
  return Dropout(stack, stream.Norm(stack), config_.dropout());
}

void EncoderDecoder::PrepareCross(const Scope& root, Value memory_hidden,
                                  const MixerState& cache) const {
  for (int i = 0; i < config_.decoder_layers(); ++i) {
    const Scope cross = root / "decoder" / LayerName(i) / "cross_attention";
    const CrossKeys keys = ProjectMemory(cross, memory_hidden, config_.cross_attention());
    for (const auto& [name, rows] : {std::pair("key", keys.key), std::pair("value", keys.value)}) {
      root.program().RecordUpdate("store", {}, {rows},
                                  {cache(LayerName(i) + "/cross/" + name, root.TypeOf(rows))});
    }
  }
}

Value EncoderDecoder::DecodeStep(const Scope& root, const StepInput& step) const {
  const Scope stack = root / "decoder";
  CheckLength("decoder", *decoder_mixer_, step.length);
  const Shape source = root.TypeOf(step.memory_segments).shape;
  const int64_t inner =
      int64_t{config_.cross_attention().heads()} * config_.cross_attention().head_size();
  const TensorType keys_type{root.recording().activations, {source[0], source[1], inner}};
  const Value bias = RelativeBias(stack, *decoder_mixer_, {1, step.length, true, step.start});
  const Value embedded = Embed(root, step.ids);
  const Value segments = OneSegment(root, embedded, step.memory_segments);
  ResidualStream stream(embedded, 0, config_.norm_epsilon());
  for (int i = 0; i < config_.decoder_layers(); ++i) {
    const Scope layer = stack / LayerName(i);
    const Scope mixer = layer / "mixer";
    stream.Add(decoder_mixer_->BuildStep(
        mixer, {.x = stream.Norm(mixer),
                .start = step.start,
                .relative_bias = bias,
                .length = step.length,
                .state = [&](const std::string& name, const TensorType& type) {
                  return step.cache(LayerName(i) + "/mixer/" + name, type);
                }}));
    const Scope cross = layer / "cross_attention";
    const Value x = stream.Norm(cross);
    const CrossKeys keys{step.cache(LayerName(i) + "/cross/key", keys_type),
                         step.cache(LayerName(i) + "/cross/value", keys_type)};
    stream.Add(
        CrossAttention(cross, x, keys, segments, step.memory_segments, config_.cross_attention()));
    const Scope feed_forward = layer / "feed_forward";
    stream.Add(FeedForward(feed_forward, stream.Norm(feed_forward), config_.feed_forward(), 0));
  }
  return stream.Norm(stack);
}

Value EncoderDecoder::OutputTable(const Scope& root) const {
  if (config_.tied_embeddings()) return EmbeddingTable(root);
  return root.Parameter(
      "output_embedding", {config_.vocabulary_size(), config_.width()}, {"vocabulary", "embed"},
      Initializer::TruncatedNormal(1 / std::sqrt(static_cast<double>(config_.width()))));
}

double EncoderDecoder::LogitScale() const {
  return config_.tied_embeddings() ? 1 / std::sqrt(static_cast<double>(config_.width())) : 1.0;
}

}  // namespace syntra
