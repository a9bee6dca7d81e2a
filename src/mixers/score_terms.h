// SPDX-License-Identifier: Apache-2.0
// The score terms of attention. Each adds operands to the fused `attention` op (kernels/README.md).
// Formulas: Tay et al. 2021, "Synthesizer: Rethinking Self-Attention for Transformer Models",
// section 3.
#pragma once

#include "mixers/mixer.h"

namespace syntra {

// Operands of the `attention` op, filled term by term.
struct AttentionOperands {
  Value query, key, value;
  Value dense_hidden, dense_positions;
  Value factor_a, factor_b;
  Value table;
};

// The values that a term can use when it is recorded.
struct TermContext {
  Value x;  // [B, T, D]
  int64_t heads, head_size;
  Value query_projection;  // x W_q if the mixture has a dot product
  Value gate_weights;      // absent: every term has weight 1
  int64_t gate_index;
  Value start;  // the position of a decode step, i32 [1]; absent for whole sequences

  // `value` times this term's gate weight.
  Value Gated(const Scope& scope, Value value) const;
  // What a term needs of a table [H, N, width], one row a query: all rows, or that of the step. So
  // a step gates and multiplies one row, however long the table is.
  Value QueryRows(const Scope& scope, Value table) const;
};

// The longest sequence that the term allows; nullopt for the dot product.
std::optional<int64_t> MaxLength(const ScoreTerm& term);

// Adds the term to `operands`. A mixture has at most one term of each kind. Throws Error(kConfig)
// if the term sets no kind.
void AddScoreTerm(const Scope& scope, const ScoreTerm& term, const TermContext& context,
                  AttentionOperands& operands);

// The query projection, [B, T, H * K]. Its weights are normal with standard deviation (D K)^-1/2,
// which includes the factor 1/sqrt(K) of dot-product attention (T5).
Value QueryProjection(const Scope& scope, Value x, int64_t heads, int64_t head_size);

}  // namespace syntra
