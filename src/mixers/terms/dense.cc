// SPDX-License-Identifier: Apache-2.0
// relu(x W1)[h, i, :] . W2[:, j] (paper equation 2; W2 is shared by the heads in the authors'
// code).
#include <cmath>

#include "mixers/terms/dense_hidden.h"
#include "mixers/terms/tables.h"

namespace syntra {
namespace {

TermTraits Traits(const ScoreTerm& term) {
  return {.operands = TermOperands::kFeature,
          .reads_positions = true,
          .limit = LengthLimit::OfMaxLength(term.dense().max_length()),
          .columns = {{term.dense().hidden(), "hidden"}}};
}

void Validate(const TermRules& rules) {
  DenseHidden::Of(rules.term.dense(), rules.attention.head_size()).Validate(rules);
}

void Build(const Scope& scope, const ScoreTerm& term, const TermInput& input,
           AttentionOperands& operands) {
  const DenseTerm& dense = term.dense();
  const DenseHidden hidden = DenseHidden::Of(dense, input.head_size);
  const int64_t n = dense.max_length();
  operands.feature = input.Gated(scope, hidden.Build(scope, input));
  const Initializer initializer =
      Initializer::TruncatedNormal(1 / std::sqrt(static_cast<double>(hidden.units)));
  const Shape shape =
      dense.share_heads() ? Shape{hidden.units, n} : Shape{input.heads, hidden.units, n};
  operands.feature_positions = scope.Parameter("positions", shape, initializer);
  if (dense.bias()) {
    const int64_t heads = dense.share_heads() ? 1 : input.heads;
    const Value bias = scope.Parameter("positions_bias", {heads, 1, n}, Initializer::Constant(0));
    AddTable(scope, input.Gated(scope, bias), operands);
  }
}

}  // namespace

TermKind term_dense() { return {.traits = Traits, .validate = Validate, .build = Build}; }

}  // namespace syntra
