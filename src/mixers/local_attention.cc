// SPDX-License-Identifier: Apache-2.0
// Dot-product attention to the positions nearby, with T5's relative bias (sliding and dilated
// windows, Beltagy et al. 2020, section 3.1). With dilation d, position p reads the keys p + d k
// for |k| < radius; if causal, for k <= 0 alone. The first tokens of a row can be global: they read
// all positions, perhaps by projections of their own, and all positions read them.
#include <fmt/format.h>

#include <algorithm>

#include "mixers/blocks.h"
#include "mixers/mixer.h"
#include "mixers/projections.h"
#include "nn/tensors.h"

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
            .per_token = {{heads * size, {"heads", "head_size"}}}};
  }

  void Validate(const FieldReport& report) const override {
    if (!config_.global_projections() || config_.global_tokens() > 0) return;
    const std::string path = report.Path("global_projections");
    report.Add({path}, fmt::format("{} are those of global tokens, of which there are none; set "
                                   "global_tokens",
                                   path));
  }

  Value Build(const Scope& scope, const MixerInput& input) const override {
    const Shape shape = scope.TypeOf(input.x).shape;
    const AttentionMask all = AttentionMask::Within(input.segments, {}, input.causal);
    const auto project = [&](const Scope& by, const std::string& name) {
      const AttentionOperands operands{.query = ProjectQuery(by, HeadsOf(config_), input.x),
                                       .key = ProjectKey(by, HeadsOf(config_), input.x),
                                       .relative_bias = input.relative_bias,
                                       .value = ProjectValue(by, HeadsOf(config_), input.x)};
      Remember(scope, input, name + "key", operands.key);
      Remember(scope, input, name + "value", operands.value);
      return operands;
    };
    Value mixed = Attention(scope, config_.heads(), project(scope, ""), Window(all));
    if (config_.global_projections()) {
      const int64_t globals = std::min<int64_t>(config_.global_tokens(), shape[1]);
      std::vector<Value> parts{AttendFrom(scope, config_.heads(),
                                          project(scope / "global", "global_"), all, 0, globals)};
      const int64_t others = shape[1] - globals;
      if (others > 0) parts.push_back(Slice(scope, mixed, 1, globals, others));
      mixed = Concatenate(scope, 1, parts);
    }
    return ProjectOutput(scope, mixed, shape[2]);
  }

  // Remembers all keys and values.
  Value BuildStep(const Scope& scope, const MixerStep& step) const override {
    const AttentionMask all{.query_start = step.start, .causal = true};
    const auto attend = [&](const Scope& by, const std::string& name, const AttentionMask& mask) {
      const AttentionOperands operands{
          .query = ProjectQuery(by, HeadsOf(config_), step.x),
          .key = Remember(scope, step, name + "key", ProjectKey(by, HeadsOf(config_), step.x)),
          .relative_bias = step.relative_bias,
          .value =
              Remember(scope, step, name + "value", ProjectValue(by, HeadsOf(config_), step.x))};
      return Attention(scope, config_.heads(), operands, mask);
    };
    Value mixed = attend(scope, "", Window(all));
    if (config_.global_projections()) {
      const Value read = attend(scope / "global", "global_", all);
      mixed = Add(scope, Multiply(scope, mixed, IfGlobal(scope, step, 0)),
                  Multiply(scope, read, IfGlobal(scope, step, 1)));
    }
    return ProjectOutput(scope, mixed, scope.TypeOf(step.x).shape[2]);
  }

 private:
  AttentionMask Window(AttentionMask mask) const {
    mask.window = config_.radius();
    mask.dilation = config_.dilation();
    mask.globals = config_.global_tokens();
    return mask;
  }

  // `value`, 0 or 1, if a step's position is a global token, else the other; f32 [1].
  Value IfGlobal(const Scope& scope, const MixerStep& step, float value) const {
    std::vector<float> values(step.length, 1 - value);
    std::fill_n(values.begin(), std::min<int64_t>(config_.global_tokens(), step.length), value);
    return GatherRows(scope, scope.program().Constant({step.length}, std::move(values)), 0,
                      step.start);
  }

  LocalAttentionConfig config_;
};

}  // namespace

std::unique_ptr<TokenMixer> mixer_local_attention(const MixerConfig& config) {
  return std::make_unique<LocalAttention>(config.local_attention());
}

}  // namespace syntra
