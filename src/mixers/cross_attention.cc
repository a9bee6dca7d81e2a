// SPDX-License-Identifier: Apache-2.0
// Dot-product attention of decoder positions to encoder positions, without relative bias (T5).
#include "mixers/key_value_heads.h"
#include "mixers/mixer.h"
#include "mixers/projections.h"
#include "nn/attention.h"
#include "nn/layers.h"
#include "nn/tensors.h"

namespace syntra {
namespace {

// `x` [B, T, D] in `rows` rows.
Value InRows(const Scope& scope, Value x, int64_t rows) {
  const Shape shape = scope.TypeOf(x).shape;
  if (shape[0] == rows) return x;
  return Reshape(scope, x, {rows, shape.rows() / rows, shape[-1]});
}

// Segments i32 [B, W * T] of B * W rows that are not packed. Padding past a row's end may attend
// to the memory, too: nobody reads what it gets.
Value OneSegment(const Scope& scope, Value x, Value memory_segments) {
  const int64_t memory_rows = scope.TypeOf(memory_segments).shape[0];
  const Shape rows = scope.TypeOf(x).shape;
  return scope.program().FillConstant({DType::kI32, {memory_rows, rows[0] * rows[1] / memory_rows}},
                                      1);
}

class CrossAttentionMixer final : public TokenMixer {
 public:
  explicit CrossAttentionMixer(const CrossAttentionConfig& config) : config_(config) {}

  MixerTraits traits() const override {
    return {.causal = true,
            .packed_rows = PackedRows::kExact,
            .per_token = {{Inner(), {"heads", "head_size"}}}};
  }

  void Validate(const FieldReport& report) const override {
    ValidateKeyValueHeads(report, config_.heads(), config_.key_value_heads());
  }

  Value Build(const Scope& scope, const MixerInput& input) const override {
    const int64_t rows = scope.TypeOf(input.x).shape[0];
    const bool one_to_one = rows == scope.TypeOf(input.memory.hidden).shape[0];
    Projected memory = ProjectMemory(scope, input.memory.hidden);
    return Mix(scope, input.x, memory, input.memory.segments,
               one_to_one ? input.segments : OneSegment(scope, input.x, input.memory.segments));
  }

  void Prepare(const Scope& scope, Value memory, const MixerState& state) const override {
    const Projected projected = ProjectMemory(scope, memory);
    const auto store = [&](const char* name, Value rows) {
      scope.program().RecordUpdate("store", {}, {rows},
                                   {state(name, scope.TypeOf(rows), StateKind::kMemory)});
    };
    store("key", projected.key);
    store("value", projected.value);
  }

  Value BuildStep(const Scope& scope, const MixerStep& step) const override {
    const Shape source = scope.TypeOf(step.memory_segments).shape;
    const TensorType type{scope.recording().activations,
                          {source[0], source[1], KeyValueHeads(config_) * config_.head_size()}};
    return Mix(scope, step.x,
               {step.state("key", type, StateKind::kMemory),
                step.state("value", type, StateKind::kMemory)},
               step.memory_segments, OneSegment(scope, step.x, step.memory_segments));
  }

 private:
  // The keys and values through which the memory is read.
  struct Projected {
    Value key, value;
  };

  int64_t Inner() const { return int64_t{config_.heads()} * config_.head_size(); }

  Projected ProjectMemory(const Scope& scope, Value memory) const {
    const int64_t inner = KeyValueHeads(config_) * config_.head_size();
    const Value key = Project(scope, "key", memory, inner);
    return {key, Project(scope, "value", memory, inner)};
  }

  Value Repeated(const Scope& scope, Value x) const {
    return RepeatHeads(scope, x, KeyValueHeads(config_), config_.heads());
  }

  // Several rows that attend to one row of the memory are laid side by side as its queries, so that
  // nothing of it is repeated; `segments` are those of the queries as they lie then.
  Value Mix(const Scope& scope, Value x, const Projected& memory, Value memory_segments,
            Value segments) const {
    const Shape rows = scope.TypeOf(x).shape;
    const int64_t width = rows[-1];
    const Value query = ProjectQuery(scope, HeadsOf(config_), x);
    const Value value =
        HeadDropout(scope, Repeated(scope, memory.value), config_.dropout(), config_.head_size());
    const Value side_by_side = InRows(scope, query, scope.TypeOf(memory_segments).shape[0]);
    const Value attended =
        Attention(scope, config_.heads(),
                  {.query = side_by_side, .key = Repeated(scope, memory.key), .value = value},
                  {.query_segments = segments, .key_segments = memory_segments});
    return ProjectOutput(scope, InRows(scope, attended, rows[0]), width);
  }

  CrossAttentionConfig config_;
};

}  // namespace

std::unique_ptr<TokenMixer> MakeCrossMixer(const CrossAttentionConfig& config) {
  return std::make_unique<CrossAttentionMixer>(config);
}

}  // namespace syntra
