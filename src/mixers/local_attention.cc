// SPDX-License-Identifier: Apache-2.0
// Dot-product attention to the positions nearby, with T5's relative bias: position p reads the keys
// p + d k with d the dilation and |k| < radius, causal those with k <= 0 (sliding and dilated
// windows, Beltagy et al. 2020, section 3.1). Global tokens, the first of a row, read and are read
// by all.
#include "mixers/mixer.h"
#include "mixers/projections.h"
#include "nn/attention.h"

namespace syntra {
namespace {

class LocalAttention final : public TokenMixer {
 public:
  explicit LocalAttention(const LocalAttentionConfig& config) : config_(config) {}

  MixerTraits traits() const override {
    const int64_t heads = config_.heads(), size = config_.head_size();
    const bool global = config_.global_tokens() > 0;
    return {.causal = true,
            .prefills = true,
            .packed_rows = global ? PackedRows::kIndependent : PackedRows::kExact,
            .bias_heads = config_.relative_bias() ? heads : 0,
            .per_token = {{heads * size, {"local_attention.heads", "local_attention.head_size"}}}};
  }

  void Validate(const FieldReport&) const override {}

  Value Build(const Scope& scope, const MixerInput& input) const override {
    const Value key = ProjectKey(scope, heads(), input.x),
                value = ProjectValue(scope, heads(), input.x);
    Remember(scope, input, "key", key);
    Remember(scope, input, "value", value);
    return Attend(scope, input.x,
                  {.key = key, .relative_bias = input.relative_bias, .value = value},
                  AttentionMask::Within(input.segments, {}, input.causal));
  }

  // Remembers all keys and values.
  Value BuildStep(const Scope& scope, const MixerStep& step) const override {
    return Attend(scope, step.x,
                  {.key = Remember(scope, step, "key", ProjectKey(scope, heads(), step.x)),
                   .relative_bias = step.relative_bias,
                   .value = Remember(scope, step, "value", ProjectValue(scope, heads(), step.x))},
                  {.query_start = step.start, .causal = true});
  }

 private:
  Heads heads() const { return {config_.heads(), config_.head_size(), config_.dropout()}; }

  Value Attend(const Scope& scope, Value x, AttentionOperands operands, AttentionMask mask) const {
    operands.query = ProjectQuery(scope, heads(), x);
    mask.window = config_.radius();
    mask.dilation = config_.dilation();
    mask.globals = config_.global_tokens();
    const Value mixed = Attention(scope.program(), config_.heads(), operands, mask);
    return ProjectOutput(scope, mixed, scope.TypeOf(x).shape[2]);
  }

  LocalAttentionConfig config_;
};

}  // namespace

std::unique_ptr<TokenMixer> mixer_local_attention(const MixerConfig& config) {
  return std::make_unique<LocalAttention>(config.local_attention());
}

}  // namespace syntra
