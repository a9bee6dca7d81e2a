// SPDX-License-Identifier: Apache-2.0
// Score terms of attention: what each adds to the operands of the fused `attention` op
// (kernels/README.md). Formulas: Tay et al. 2021, "Synthesizer: Rethinking Self-Attention for
// Transformer Models", section 3.
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

// What a term may read while it is recorded.
struct TermContext {
  Value x;  // [B, T, D]
  int64_t heads, head_size;
  Value query_projection;  // x W_q when the mixture has a dot product
  Value gate_weights;      // absent: every term counts fully
  int64_t gate_index;

  // `value` times this term's gate weight.
  Value Gated(const Scope& scope, Value value) const;
};

// Longest sequence the term reaches; none for dot product.
std::optional<int64_t> MaxLength(const ScoreTerm& term);

// Adds the term to `operands`; a mixture has at most one of each kind. Throws Error(kConfig) if it
// names no kind.
void AddScoreTerm(const Scope& scope, const ScoreTerm& term, const TermContext& context,
                  AttentionOperands& operands);

// The query projection, [B, T, H * K]: normal with deviation (D K)^-1/2, which holds the 1/sqrt(K)
// of dot-product attention (T5).
Value QueryProjection(const Scope& scope, Value x, int64_t heads, int64_t head_size);

}  // namespace syntra
