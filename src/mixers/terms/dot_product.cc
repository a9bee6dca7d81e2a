// SPDX-License-Identifier: Apache-2.0
// q_i . k_j, the Transformer's score ("Vanilla"). The factor 1/sqrt(K) is in the initial weights of
// the query (T5).
#include <cmath>

#include "mixers/score_term.h"
#include "nn/layers.h"

namespace syntra {
namespace {

TermTraits Traits(const ScoreTerm&) { return {.operands = TermOperands::kProduct}; }

void Build(const Scope& scope, const ScoreTerm&, const TermInput& input,
           AttentionOperands& operands) {
  operands.query = input.Gated(scope, input.query_projection);
  const int64_t width = scope.TypeOf(input.x).shape[-1];
  operands.key = Linear(scope, "key", input.x,
                        {input.heads * input.head_size,
                         {"embed", "joined_kv"},
                         Initializer::Normal(1 / std::sqrt(static_cast<double>(width)))});
}

}  // namespace

Value QueryProjection(const Scope& scope, Value x, int64_t heads, int64_t head_size) {
  const int64_t width = scope.TypeOf(x).shape[-1];
  return Linear(scope, "query", x,
                {heads * head_size,
                 {"embed", "joined_kv"},
                 Initializer::Normal(1 / std::sqrt(static_cast<double>(width * head_size)))});
}

TermKind term_dot_product() { return {.traits = Traits, .build = Build}; }

}  // namespace syntra
