// SPDX-License-Identifier: Apache-2.0
// R[h, i, j], a learned table (paper 3.2, "Random").
#include "mixers/terms/tables.h"

namespace syntra {
namespace {

TermTraits Traits(const ScoreTerm& term) {
  return {.operands = TermOperands::kTable,
          .reads_positions = true,
          .limit = LengthLimit::OfMaxLength(term.random().max_length())};
}

void Validate(const TermRules& rules) { CheckDeviationIsUsed(rules.term.random(), rules.in_term); }

void Build(const Scope& scope, const ScoreTerm& term, const TermInput& input,
           AttentionOperands& operands) {
  const RandomTerm& random = term.random();
  const int64_t heads = random.per_head() ? input.heads : 1, n = random.max_length();
  const Value table = scope.Parameter(
      "table", {heads, n, n},
      TableInitializer(random.initialization(), random.deviation(), {n, heads, n}, n, n),
      random.trainable());
  AddTable(scope, input.Gated(scope, input.QueryRows(scope, table)), operands);
}

}  // namespace

TermKind term_random() { return {.traits = Traits, .validate = Validate, .build = Build}; }

}  // namespace syntra
