// SPDX-License-Identifier: Apache-2.0
// T5's relative position bias as a term of one layer, with a table of its own.
#include "mixers/relative_bias.h"

#include <fmt/format.h>

#include "mixers/score_term.h"

namespace syntra {
namespace {

TermTraits Traits(const ScoreTerm&) { return {.operands = TermOperands::kRelativeBias}; }

void Validate(const TermRules& rules) {
  ValidateRelativeBias(rules.term.relative_bias(), rules.in_term);
  if (!rules.attention.relative_bias()) return;
  rules.in_attention.Add(
      {rules.in_term.path(), rules.in_attention.Path("relative_bias")},
      fmt::format("{} and the stack's relative bias are both added; set {}: "
                  "false, or remove the term",
                  rules.in_term.path(), rules.in_attention.Path("relative_bias")));
}

void Build(const Scope& scope, const ScoreTerm& term, const TermInput& input,
           AttentionOperands& operands) {
  const int64_t queries = scope.TypeOf(input.x).shape[1];
  const Value bias = RelativeBias(scope, "table", term.relative_bias(), input.heads,
                                  {queries, input.length, input.causal, input.start});
  operands.relative_bias = input.Gated(scope, bias);
  if (!input.start) operands.bias_reach = BiasReach(term.relative_bias(), input.causal);
}

}  // namespace

TermKind term_relative_bias() { return {.traits = Traits, .validate = Validate, .build = Build}; }

}  // namespace syntra
