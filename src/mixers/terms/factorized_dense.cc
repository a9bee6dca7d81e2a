// SPDX-License-Identifier: Apache-2.0
// A[h, i, j mod a] * B[h, i, j div a] (paper 3.1, "Factorized Dense"; tile and repeat as in the
// first author's survey, arXiv 2009.06732).
#include <fmt/format.h>

#include <cmath>

#include "mixers/terms/dense_hidden.h"
#include "nn/layers.h"

namespace syntra {
namespace {

TermTraits Traits(const ScoreTerm& term) {
  const FactorizedDenseTerm& dense = term.factorized_dense();
  const int64_t product = int64_t{dense.a()} * dense.b();
  return {.operands = TermOperands::kOuter,
          .reads_positions = true,
          .limit = LengthLimit{product, "",
                               fmt::format("a * b = {} * {} = {}", dense.a(), dense.b(), product)},
          .columns = {{dense.hidden(), "hidden"}, {dense.a(), "a"}, {dense.b(), "b"}}};
}

void Validate(const TermRules& rules) {
  DenseHidden::Of(rules.term.factorized_dense(), rules.attention.head_size()).Validate(rules);
}

// A linear map of each head's hidden units [B, T, H * in] -> [B, T, H * out].
Value PerHeadMap(const Scope& scope, const char* name, Value hidden, int64_t heads, int64_t out,
                 const FactorizedDenseTerm& term) {
  const int64_t in = scope.TypeOf(hidden).shape[-1] / heads;
  const Initializer initializer =
      Initializer::TruncatedNormal(1 / std::sqrt(static_cast<double>(in)));
  const Shape shape = term.share_heads() ? Shape{in, out} : Shape{heads, in, out};
  const Value weight = scope.Parameter(name, shape, initializer);
  const Value mapped = scope.One("head_matmul", {{"heads", heads}}, {hidden, weight});
  return term.bias() ? AddBias(scope, std::string(name) + "_bias", mapped) : mapped;
}

void Build(const Scope& scope, const ScoreTerm& term, const TermInput& input,
           AttentionOperands& operands) {
  const FactorizedDenseTerm& dense = term.factorized_dense();
  const Value hidden = DenseHidden::Of(dense, input.head_size).Build(scope, input);
  operands.outer_a =
      input.Gated(scope, PerHeadMap(scope, "a", hidden, input.heads, dense.a(), dense));
  operands.outer_b = PerHeadMap(scope, "b", hidden, input.heads, dense.b(), dense);
}

}  // namespace

TermKind term_factorized_dense() {
  return {.traits = Traits, .validate = Validate, .build = Build};
}

}  // namespace syntra
