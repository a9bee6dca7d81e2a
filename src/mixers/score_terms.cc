// SPDX-License-Identifier: Apache-2.0
#include "mixers/score_terms.h"

#include <algorithm>
#include <cmath>

#include "nn/layers.h"

namespace syntra {
namespace {

// Half the width of TensorFlow's Glorot-uniform interval for a 3-D shape: leading extents are a
// receptive field that multiplies both fans.
double Glorot3d(const Shape& shape) {
  return std::sqrt(6.0 / static_cast<double>(shape[0] * (shape[1] + shape[2])));
}

// `stored` is the shape in which the authors store the table; it determines TensorFlow's fans.
Initializer TableInitializer(TableInitialization kind, double deviation, const Shape& stored,
                             int64_t rows, int64_t columns) {
  switch (kind) {
    case GLOROT_2D:
      return Initializer::Uniform(std::sqrt(6.0 / static_cast<double>(rows + columns)));
    case NORMAL:
      return Initializer::Normal(deviation);
    case GLOROT_3D:
      break;
  }
  return Initializer::Uniform(Glorot3d(stored));
}

// The top-left block of a table [H or 1, N or 1, N].
Value TopLeft(const Scope& scope, Value table, int64_t length) {
  for (const int64_t axis : {int64_t{1}, int64_t{2}}) {
    if (scope.TypeOf(table).shape[static_cast<int>(axis)] > length) {
      table =
          scope.One("slice", {{"axis", axis}, {"begin", int64_t{0}}, {"length", length}}, {table});
    }
  }
  return table;
}

// If two tables have different lengths, the shorter is the limit.
void AddTable(const Scope& scope, Value table, AttentionOperands& operands) {
  if (!operands.table) {
    operands.table = table;
    return;
  }
  const int64_t length =
      std::min(scope.TypeOf(operands.table).shape[-1], scope.TypeOf(table).shape[-1]);
  operands.table =
      scope.One("add", {}, {TopLeft(scope, operands.table, length), TopLeft(scope, table, length)});
}

void AddDotProduct(const Scope& scope, const TermContext& context, AttentionOperands& operands) {
  operands.query = context.Gated(scope, context.query_projection);
  const int64_t width = scope.TypeOf(context.x).shape[-1];
  operands.key = Linear(scope, "key", context.x,
                        {context.heads * context.head_size,
                         {"embed", "joined_kv"},
                         Initializer::Normal(1 / std::sqrt(static_cast<double>(width)))});
}

// R[h, i, j] (paper 3.2, "Random").
void AddRandom(const Scope& scope, const RandomTerm& term, const TermContext& context,
               AttentionOperands& operands) {
  const int64_t heads = term.per_head() ? context.heads : 1, n = term.max_length();
  const Value table = scope.Parameter(
      "random/table", {heads, n, n}, {"heads", "query", "key"},
      TableInitializer(term.initialization(), term.deviation(), {n, heads, n}, n, n),
      term.trainable());
  AddTable(scope, context.Gated(scope, context.QueryRows(scope, table)), operands);
}

// a[h, j, :] . b[h, j, :] as a table [H, 1, N].
Value RowDots(const Scope& scope, Value a, Value b) {
  const Shape shape = scope.TypeOf(a).shape;
  const Attributes::Integers column = {shape[0], shape[1], 1}, row = {shape[0], 1, shape[1]};
  const Value dots =
      scope.One("sum_to", {{"shape", column}, {"dtype", std::string("f32")}}, {a, b});
  return scope.One("reshape", {{"shape", row}}, {dots});
}

// R1[h, i, :] . R2[h, j, :] (paper 3.2, "Factorized Random").
void AddFactorizedRandom(const Scope& scope, const FactorizedRandomTerm& term,
                         const TermContext& context, AttentionOperands& operands) {
  const int64_t n = term.max_length(), rank = term.rank();
  const Initializer initializer =
      TableInitializer(term.initialization(), term.deviation(), {rank, context.heads, n}, n, rank);
  const auto factor = [&](const char* name, const char* axis) {
    return scope.Parameter(name, {context.heads, n, rank}, {"heads", axis, "rank"}, initializer,
                           term.trainable());
  };
  const Value query = factor("factorized_random/query", "query");
  const Value key = factor("factorized_random/key", "key");
  Value table;
  if (term.broadcast_over_queries()) {
    table = RowDots(scope, query, key);
  } else {
    table =
        scope.One("batch_matmul",
                  {{"transpose_a", false}, {"transpose_b", true}, {"dtype", std::string("f32")}},
                  {context.QueryRows(scope, query), key});
  }
  AddTable(scope, context.Gated(scope, table), operands);
}

// relu(x W1 + b1), the hidden layer of the dense terms; [B, T, H * F]. With share_query it is relu
// of the query projection, as in the authors' code.
template <typename Term>
Value DenseHidden(const Scope& scope, const Term& term, const TermContext& context,
                  int64_t hidden) {
  const bool shared = term.share_query() && context.query_projection && hidden == context.head_size;
  Value units = context.query_projection;
  if (!shared) {
    const int64_t width = scope.TypeOf(context.x).shape[-1];
    const LinearSpec spec{context.heads * hidden,
                          {"embed", "joined_kv"},
                          Initializer::Normal(1 / std::sqrt(static_cast<double>(width * hidden)))};
    if (!term.bias()) return LinearRelu(scope, "hidden", context.x, spec);
    units = Linear(scope, "hidden", context.x, spec);
  }
  if (term.bias()) {
    const Value bias = scope.Parameter("hidden_bias", {context.heads * hidden}, {"joined_kv"},
                                       Initializer::Constant(0));
    units = scope.One("add", {}, {units, bias});
  }
  return scope.One("activation", {{"kind", std::string("relu")}}, {units});
}

// relu(x W1)[h, i, :] . W2[:, j] (paper equation 2; W2 shared by the heads in the authors' code).
void AddDense(const Scope& scope, const DenseTerm& term, const TermContext& context,
              AttentionOperands& operands) {
  const Scope dense = scope / "dense";
  const int64_t hidden = term.hidden() > 0 ? term.hidden() : context.head_size;
  const int64_t n = term.max_length();
  const int64_t head_tables = term.share_heads() ? 1 : context.heads;
  operands.dense_hidden = context.Gated(scope, DenseHidden(dense, term, context, hidden));
  const Initializer initializer =
      Initializer::TruncatedNormal(1 / std::sqrt(static_cast<double>(hidden)));
  operands.dense_positions =
      term.share_heads() ? dense.Parameter("positions", {hidden, n}, {"kv", "key"}, initializer)
                         : dense.Parameter("positions", {context.heads, hidden, n},
                                           {"heads", "kv", "key"}, initializer);
  if (term.bias()) {
    const Value bias = dense.Parameter("positions_bias", {head_tables, 1, n},
                                       {"heads", "query", "key"}, Initializer::Constant(0));
    AddTable(scope, context.Gated(scope, bias), operands);
  }
}

// A linear map of each head's hidden units [B, T, H * F] -> [B, T, H * out].
Value PerHeadMap(const Scope& scope, const char* name, Value hidden, const TermContext& context,
                 int64_t in, int64_t out, bool share_heads, bool bias) {
  const Initializer initializer =
      Initializer::TruncatedNormal(1 / std::sqrt(static_cast<double>(in)));
  const Value weight = share_heads ? scope.Parameter(name, {in, out}, {"kv", "key"}, initializer)
                                   : scope.Parameter(name, {context.heads, in, out},
                                                     {"heads", "kv", "key"}, initializer);
  Value mapped = scope.One("head_matmul", {{"heads", context.heads}}, {hidden, weight});
  if (!bias) return mapped;
  const Value shift = scope.Parameter(std::string(name) + "_bias", {context.heads * out},
                                      {"joined_kv"}, Initializer::Constant(0));
  return scope.One("add", {}, {mapped, shift});
}

// A[h, i, j mod a] * B[h, i, j div a] (paper 3.1, "Factorized Dense"; tile and repeat as in the
// first author's survey, arXiv 2009.06732).
void AddFactorizedDense(const Scope& scope, const FactorizedDenseTerm& term,
                        const TermContext& context, AttentionOperands& operands) {
  const Scope dense = scope / "factorized_dense";
  const int64_t hidden = term.hidden() > 0 ? term.hidden() : context.head_size;
  const Value units = DenseHidden(dense, term, context, hidden);
  const Value a =
      PerHeadMap(dense, "a", units, context, hidden, term.a(), term.share_heads(), term.bias());
  operands.factor_a = context.Gated(scope, a);
  operands.factor_b =
      PerHeadMap(dense, "b", units, context, hidden, term.b(), term.share_heads(), term.bias());
}

}  // namespace

Value TermContext::Gated(const Scope& scope, Value value) const {
  if (!gate_weights) return value;
  const Value weight =
      scope.One("slice", {{"axis", int64_t{0}}, {"begin", gate_index}, {"length", int64_t{1}}},
                {gate_weights});
  return scope.One("multiply", {}, {value, weight});
}

Value TermContext::QueryRows(const Scope& scope, Value table) const {
  if (!start) return table;
  return scope.One("gather_rows", {{"axis", int64_t{1}}}, {table, start});
}

std::optional<int64_t> MaxLength(const ScoreTerm& term) {
  switch (term.kind_case()) {
    case ScoreTerm::kRandom:
      return term.random().max_length();
    case ScoreTerm::kFactorizedRandom:
      return term.factorized_random().max_length();
    case ScoreTerm::kDense:
      return term.dense().max_length();
    case ScoreTerm::kFactorizedDense:
      return int64_t{term.factorized_dense().a()} * term.factorized_dense().b();
    default:
      return std::nullopt;
  }
}

void AddScoreTerm(const Scope& scope, const ScoreTerm& term, const TermContext& context,
                  AttentionOperands& operands) {
  switch (term.kind_case()) {
    case ScoreTerm::kDotProduct:
      return AddDotProduct(scope, context, operands);
    case ScoreTerm::kRandom:
      return AddRandom(scope, term.random(), context, operands);
    case ScoreTerm::kFactorizedRandom:
      return AddFactorizedRandom(scope, term.factorized_random(), context, operands);
    case ScoreTerm::kDense:
      return AddDense(scope, term.dense(), context, operands);
    case ScoreTerm::kFactorizedDense:
      return AddFactorizedDense(scope, term.factorized_dense(), context, operands);
    case ScoreTerm::KIND_NOT_SET:
      break;
  }
  Fail(ExitCode::kConfig, "a term of the mixture names no kind; write e.g. term {{ random {{}} }}");
}

Value QueryProjection(const Scope& scope, Value x, int64_t heads, int64_t head_size) {
  const int64_t width = scope.TypeOf(x).shape[-1];
  return Linear(scope, "query", x,
                {heads * head_size,
                 {"embed", "joined_kv"},
                 Initializer::Normal(1 / std::sqrt(static_cast<double>(width * head_size)))});
}

}  // namespace syntra
