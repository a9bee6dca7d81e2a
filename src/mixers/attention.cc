// SPDX-License-Identifier: Apache-2.0
// Attention over a mixture of score terms: the Transformer's dot product, every Synthesizer, and
// any additive mixture of them before one softmax (Tay et al. 2021, sections 3.1-3.3).
#include <cmath>
#include <set>

#include "mixers/score_terms.h"
#include "nn/layers.h"

namespace syntra {
namespace {

class Attention final : public TokenMixer {
 public:
  explicit Attention(const AttentionConfig& config) : config_(config) {
    if (config_.term_size() == 0) config_.add_term()->mutable_dot_product();
    if (config_.gate() == AttentionConfig::SIGMOID && config_.term_size() != 2) {
      Fail(ExitCode::kConfig, "gate SIGMOID mixes two terms, not {}; use gate: SOFTMAX",
           config_.term_size());
    }
    std::set<int> kinds;
    for (const ScoreTerm& term : config_.term()) {
      // Two terms of the same kind would share the names of their parameters.
      if (kinds.insert(term.kind_case()).second) continue;
      const auto* field = ScoreTerm::descriptor()->FindFieldByNumber(term.kind_case());
      Fail(ExitCode::kConfig, "a mixture can have only one {} term; remove one",
           field ? field->name() : "nameless");
    }
  }

  MixerTraits traits() const override {
    MixerTraits traits{.causal = true,
                       .incremental = config_.index_by() == AttentionConfig::ROW,
                       .wants_relative_bias = config_.relative_bias(),
                       .heads = config_.heads(),
                       .max_length = std::nullopt};
    for (const ScoreTerm& term : config_.term()) {
      const std::optional<int64_t> length = MaxLength(term);
      if (length && (!traits.max_length || *length < *traits.max_length)) {
        traits.max_length = length;
      }
    }
    return traits;
  }

  Value Build(const Scope& scope, const MixerInput& input) const override {
    AttentionOperands operands = Terms(scope, input.x);
    operands.value = HeadDropout(scope, operands.value, config_.dropout(), config_.head_size());
    const Value positions =
        config_.index_by() == AttentionConfig::SEGMENT_POSITION ? input.positions : Value{};
    return Mix(scope, operands,
               {.width = scope.TypeOf(input.x).shape[-1],
                .bias = input.relative_bias,
                .segments = input.segments,
                .positions = positions,
                .causal = input.causal});
  }

  Value BuildStep(const Scope& scope, const MixerStep& step) const override {
    AttentionOperands operands = Terms(scope, step.x, step.start);
    const auto remember = [&](const char* name, Value rows) {
      if (!rows) return rows;
      const Value cache = step.cache(name, scope.TypeOf(rows).shape[-1]);
      scope.program().RecordUpdate("write_rows", {{"length", step.length}}, {rows, step.start},
                                   {cache});
      return cache;
    };
    operands.key = remember("key", operands.key);
    operands.value = remember("value", operands.value);
    return Mix(scope, operands,
               {.width = scope.TypeOf(step.x).shape[-1],
                .bias = step.relative_bias,
                .start = step.start,
                .causal = true});
  }

 private:
  // The operands of the op besides its score terms.
  struct Placement {
    int64_t width = 0;  // D
    Value bias, segments, positions, start;
    bool causal = false;
  };

  // Of whole sequences, or of the position `start`.
  AttentionOperands Terms(const Scope& scope, Value x, Value start = {}) const {
    const int64_t width = scope.TypeOf(x).shape[-1];
    AttentionOperands operands;
    TermContext context{.x = x,
                        .heads = config_.heads(),
                        .head_size = config_.head_size(),
                        .query_projection = {},
                        .gate_weights = GateWeights(scope),
                        .gate_index = 0,
                        .start = start};
    for (const ScoreTerm& term : config_.term()) {
      if (term.has_dot_product()) {
        context.query_projection = QueryProjection(scope, x, config_.heads(), config_.head_size());
      }
    }
    for (const ScoreTerm& term : config_.term()) {
      AddScoreTerm(scope, term, context, operands);
      ++context.gate_index;
    }
    operands.value = Linear(scope, "value", x,
                            {int64_t{config_.heads()} * config_.head_size(),
                             {"embed", "joined_kv"},
                             Initializer::Normal(1 / std::sqrt(static_cast<double>(width)))});
    return operands;
  }

  Value GateWeights(const Scope& scope) const {
    if (config_.gate() == AttentionConfig::SUM) return {};
    const bool sigmoid = config_.gate() == AttentionConfig::SIGMOID;
    const Value logits =
        scope.Parameter("gate", {sigmoid ? 1 : config_.term_size()}, {"terms"},
                        Initializer::Constant(sigmoid ? config_.initial_alpha() : 0));
    if (!sigmoid) return scope.One("softmax", {}, {logits});
    // 1 - sigmoid(x) and sigmoid(x), neither of them by a difference.
    const Value pair = scope.One(
        "pad", {{"axis", int64_t{0}}, {"before", int64_t{1}}, {"after", int64_t{0}}}, {logits});
    return scope.One("softmax", {}, {pair});
  }

  Value Mix(const Scope& scope, const AttentionOperands& operands, const Placement& place) const {
    const int64_t inner = int64_t{config_.heads()} * config_.head_size();
    const Value mixed = scope.One(
        "attention", {{"heads", int64_t{config_.heads()}}, {"causal", place.causal}},
        {operands.query, operands.key, operands.value, operands.dense_hidden,
         operands.dense_positions, operands.factor_a, operands.factor_b, operands.table, place.bias,
         place.segments, place.segments, place.positions, place.positions, place.start});
    return Linear(scope, "output", mixed,
                  {place.width,
                   {"joined_kv", "embed"},
                   Initializer::Normal(1 / std::sqrt(static_cast<double>(inner)))});
  }

  AttentionConfig config_;
};

}  // namespace

std::unique_ptr<TokenMixer> mixer_attention(const MixerConfig& config) {
  return std::make_unique<Attention>(config.attention());
}

}  // namespace syntra
