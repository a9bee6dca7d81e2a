// SPDX-License-Identifier: Apache-2.0
// Attention over a mixture of score terms: the Transformer's dot product, every Synthesizer, and
// any additive mixture of them before one softmax (Tay et al. 2021, sections 3.1-3.3).
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "configs/schema/kind_of.h"
#include "mixers/key_value_heads.h"
#include "mixers/projections.h"
#include "mixers/score_term.h"
#include "nn/layers.h"
#include "nn/tensors.h"

namespace syntra {
namespace {

std::string TermField(int index) { return ElementPath("term", index); }

// Names that the mixture's own parameters have.
constexpr const char* kReservedNames[] = {"gate", "key", "norm", "output", "query", "value"};

class AttentionMixer final : public TokenMixer {
 public:
  explicit AttentionMixer(const AttentionConfig& config) : config_(config) {
    if (config_.term_size() == 0) config_.add_term()->mutable_dot_product();
  }

  MixerTraits traits() const override {
    const bool by_position = config_.index_by() == AttentionConfig::SEGMENT_POSITION;
    const int64_t heads = config_.heads();
    MixerTraits traits{.causal = true,
                       .bidirectional_prefix = true,
                       .prefills = true,
                       .bias_heads = config_.relative_bias() ? heads : 0,
                       .per_token = {{heads * config_.head_size(), {"heads", "head_size"}}}};
    bool indexed = false;
    traits.sees_order = config_.relative_bias();
    for (int i = 0; i < config_.term_size(); ++i) {
      const TermKind* kind = FindTermKind(config_.term(i));
      if (!kind) continue;
      const TermTraits term = kind->traits(config_.term(i));
      const std::string path = TermPath(i);
      indexed |= term.reads_positions;
      traits.sees_order |= term.reads_positions || term.operands == TermOperands::kRelativeBias;
      if (term.limit) {
        traits.limits.push_back(
            {term.limit->length, FieldPath(path, term.limit->field), term.limit->value});
      }
      for (const TermColumns& each : term.columns) {
        traits.per_token.push_back({heads * each.columns, {"heads", FieldPath(path, each.field)}});
      }
    }
    traits.reads_positions = indexed && by_position;
    traits.packed_rows = indexed && !by_position ? PackedRows::kIndependent : PackedRows::kExact;
    if (traits.reads_positions) {
      traits.not_incremental =
          "index_by: SEGMENT_POSITION cannot generate: a token's place is taken from the segments "
          "of a whole row, and decoding has one position at a time; train with index_by: ROW to "
          "generate";
    }
    return traits;
  }

  void Validate(const FieldReport& report) const override {
    ValidateGate(report);
    ValidateKeyValueHeads(report, config_.heads(), config_.key_value_heads());
    std::map<TermOperands, int> operands;
    std::map<std::string, int> names;
    for (int i = 0; i < config_.term_size(); ++i) {
      const ScoreTerm& term = config_.term(i);
      const std::string path = report.Path(TermField(i));
      const TermKind* kind = FindTermKind(term);
      if (!kind) {
        report.Add({path},
                   fmt::format("{} names no kind; write e.g. term {{ random {{}} }}", path));
        continue;
      }
      ValidateName(report, i);
      const TermOperands filled = kind->traits(term).operands;
      if (filled != TermOperands::kTable && !operands.emplace(filled, i).second) {
        report.Add({path}, fmt::format("{} is a second {}, but attention takes one; remove it, "
                                       "or add heads",
                                       path, KindOf(term)));
      } else if (const auto [other, fresh] = names.emplace(TermName(term), i); !fresh) {
        report.Add({path}, fmt::format("{} and term[{}] would both be called \"{}\"; give it "
                                       "another name, e.g. name: \"{}_2\"",
                                       path, other->second, TermName(term), TermName(term)));
      }
      if (kind->validate) kind->validate({term, config_, report, report / TermPath(i)});
    }
  }

  Value Build(const Scope& scope, const MixerInput& input) const override {
    const int64_t length = scope.TypeOf(input.x).shape[1];
    AttentionOperands operands = Operands(
        scope, {.x = input.x, .length = length, .causal = input.causal && !input.prefix_ends});
    if (operands.key) Remember(scope, input, "key", operands.key);
    Remember(scope, input, "value", operands.value);
    ShareHeads(scope, operands);
    operands.value = HeadDropout(scope, operands.value, config_.dropout(), config_.head_size());
    if (input.relative_bias) {
      operands.relative_bias = input.relative_bias;
      operands.bias_reach = input.bias_reach;
    }
    const Value positions = traits().reads_positions ? input.positions : Value{};
    AttentionMask mask = AttentionMask::Within(input.segments, positions, input.causal);
    mask.prefix_ends = input.prefix_ends;
    return Mix(scope, input.x, operands, mask);
  }

  Value BuildStep(const Scope& scope, const MixerStep& step) const override {
    AttentionOperands operands = Operands(scope, {.x = step.x,
                                                  .length = step.length,
                                                  .causal = !step.bidirectional_prefix,
                                                  .start = step.start});
    if (operands.key) operands.key = Remember(scope, step, "key", operands.key);
    operands.value = Remember(scope, step, "value", operands.value);
    ShareHeads(scope, operands);
    if (step.relative_bias) operands.relative_bias = step.relative_bias;
    return Mix(scope, step.x, operands, {.query_start = step.start, .causal = true});
  }

 private:
  // Where the message of a term's kind is: "term[0].random".
  std::string TermPath(int index) const {
    return FieldPath(TermField(index), KindOf(config_.term(index)));
  }

  void ValidateGate(const FieldReport& report) const {
    const std::string gate = report.Path("gate"), alpha = report.Path("initial_alpha");
    const int terms = config_.term_size();
    if (config_.gate() != AttentionConfig::SIGMOID) {
      if (config_.initial_alpha() == 0) return;
      report.Add({alpha}, fmt::format("{} has no effect with gate {}; set gate: SIGMOID", alpha,
                                      AttentionConfig::Gate_Name(config_.gate())));
    } else if (terms != 2) {
      report.Add({gate, report.Path("term")},
                 fmt::format("{}: SIGMOID weighs exactly two terms, but there {} {}; use SOFTMAX "
                             "or SUM, or give two terms",
                             gate, terms == 1 ? "is" : "are", terms));
    }
  }

  // Names become a part of parameters' names.
  void ValidateName(const FieldReport& report, int index) const {
    const ScoreTerm& term = config_.term(index);
    if (term.name().empty()) return;
    const bool is_word =
        term.name()[0] >= 'a' && term.name()[0] <= 'z' &&
        term.name().find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_") == std::string::npos;
    const bool reserved = std::ranges::count(kReservedNames, term.name()) > 0;
    if (is_word && !reserved) return;
    const std::string path = report.Path(TermField(index)) + ".name";
    report.Add({path}, reserved ? fmt::format("{} {} is the name of a parameter of the mixture; "
                                              "use another",
                                              path, term.name())
                                : fmt::format("{} must be a word of lowercase letters, digits and "
                                              "underscores, e.g. {}_2",
                                              path, KindOf(term)));
  }

  // The operands of the terms, and the values.
  AttentionOperands Operands(const Scope& scope, TermInput input) const {
    input.heads = config_.heads();
    input.key_value_heads = KeyValueHeads(config_);
    input.head_size = config_.head_size();
    input.gate_weights = GateWeights(scope);
    for (const ScoreTerm& term : config_.term()) {
      if (!term.has_dot_product()) continue;
      input.query_projection = ProjectQuery(TermScope(scope, term), HeadsOf(config_), input.x);
    }
    AttentionOperands operands;
    for (const ScoreTerm& term : config_.term()) {
      FindTermKind(term)->build(TermScope(scope, term), term, input, operands);
      ++input.gate_index;
    }
    operands.value = Project(scope, "value", input.x, input.key_value_heads * input.head_size);
    return operands;
  }

  // Keys and values are projected, and remembered, once for all heads that share them.
  void ShareHeads(const Scope& scope, AttentionOperands& operands) const {
    const auto repeat = [&](Value x) {
      return RepeatHeads(scope, x, KeyValueHeads(config_), config_.heads());
    };
    if (operands.key) operands.key = repeat(operands.key);
    operands.value = repeat(operands.value);
  }

  Value GateWeights(const Scope& scope) const {
    if (config_.gate() == AttentionConfig::SUM) return {};
    const bool sigmoid = config_.gate() == AttentionConfig::SIGMOID;
    const Value logits =
        scope.Parameter("gate", {sigmoid ? 1 : config_.term_size()},
                        Initializer::Constant(sigmoid ? config_.initial_alpha() : 0));
    if (!sigmoid) return scope.One("softmax", {}, {logits});
    // 1 - sigmoid(x) and sigmoid(x), neither of them by a difference.
    return scope.One("softmax", {}, {Pad(scope, logits, 0, 1, 0)});
  }

  Value Mix(const Scope& scope, Value x, const AttentionOperands& operands,
            const AttentionMask& mask) const {
    return ProjectOutput(scope, Attention(scope, config_.heads(), operands, mask),
                         scope.TypeOf(x).shape[-1]);
  }

  AttentionConfig config_;
};

}  // namespace

std::unique_ptr<TokenMixer> mixer_attention(const MixerConfig& config) {
  return std::make_unique<AttentionMixer>(config.attention());
}

}  // namespace syntra
