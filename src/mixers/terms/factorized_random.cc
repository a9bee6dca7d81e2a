// SPDX-License-Identifier: Apache-2.0
// R1[h, i, :] . R2[h, j, :], a learned table of low rank (paper 3.2, "Factorized Random").
#include "mixers/terms/tables.h"
#include "nn/tensors.h"

namespace syntra {
namespace {

TermTraits Traits(const ScoreTerm& term) {
  return {.operands = TermOperands::kTable,
          .reads_positions = true,
          .limit = LengthLimit::OfMaxLength(term.factorized_random().max_length())};
}

void Validate(const TermRules& rules) {
  CheckDeviationIsUsed(rules.term.factorized_random(), rules.in_term);
}

// a[h, j, :] . b[h, j, :] as a table [H, 1, N].
Value RowDots(const Scope& scope, Value a, Value b) {
  const Shape shape = scope.TypeOf(a).shape;
  const Value dots = SumTo(scope, a, {shape[0], shape[1], 1}, b);
  return Reshape(scope, dots, {shape[0], 1, shape[1]});
}

void Build(const Scope& scope, const ScoreTerm& term, const TermInput& input,
           AttentionOperands& operands) {
  const FactorizedRandomTerm& random = term.factorized_random();
  const int64_t n = random.max_length(), rank = random.rank();
  const Initializer initializer = TableInitializer(random.initialization(), random.deviation(),
                                                   {rank, input.heads, n}, n, rank);
  const auto factor = [&](const char* name) {
    return scope.Parameter(name, {input.heads, n, rank}, initializer, random.trainable());
  };
  const Value query = factor("query"), key = factor("key");
  Value table;
  if (random.broadcast_over_queries()) {
    table = RowDots(scope, query, key);
  } else {
    table =
        BatchProduct(scope, input.QueryRows(scope, query), key, DType::kF32, Transposed::kRight);
  }
  AddTable(scope, input.Gated(scope, table), operands);
}

}  // namespace

TermKind term_factorized_random() {
  return {.traits = Traits, .validate = Validate, .build = Build};
}

}  // namespace syntra
