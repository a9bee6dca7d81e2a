// SPDX-License-Identifier: Apache-2.0
// q_i . k_j, the Transformer's score ("Vanilla"). The factor 1/sqrt(K) is in the initial weights of
// the query (T5).
#include "mixers/projections.h"
#include "mixers/score_term.h"

namespace syntra {
namespace {

TermTraits Traits(const ScoreTerm&) { return {.operands = TermOperands::kProduct}; }

void Build(const Scope& scope, const ScoreTerm&, const TermInput& input,
           AttentionOperands& operands) {
  operands.query = input.Gated(scope, input.query_projection);
  operands.key = Project(scope, "key", input.x, input.key_value_heads * input.head_size);
}

}  // namespace

TermKind term_dot_product() { return {.traits = Traits, .build = Build}; }

}  // namespace syntra
