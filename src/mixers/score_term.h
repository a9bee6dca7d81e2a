// SPDX-License-Identifier: Apache-2.0
// The score terms of attention. Each kind is a file of src/mixers/terms with its rules, its traits
// and the operands that it adds to the fused `attention` op.
// Formulas: Tay et al. 2021, "Synthesizer: Rethinking Self-Attention for Transformer Models",
// section 3.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "mixers/mixer.h"
#include "nn/attention.h"

namespace syntra {

// The operands of the op that a term fills. The op takes one set of each kind; only tables add up.
enum class TermOperands { kProduct, kFeature, kOuter, kTable, kRelativeBias };

// Columns that a term holds for every token and head, and the field that says how many.
struct TermColumns {
  int64_t columns = 0;
  std::string field;  // of the term's message
};

struct TermTraits {
  TermOperands operands = TermOperands::kTable;
  // Whether learned operands are read by position, so that AttentionConfig.index_by matters.
  bool reads_positions = false;
  std::optional<LengthLimit> limit;  // its field is one of the term's message
  std::vector<TermColumns> columns;
};

// The inputs from which a term is recorded.
struct TermInput {
  Value x;  // [B, T, D]
  int64_t heads = 0, head_size = 0;
  int64_t key_value_heads = 0;  // heads that keys and values have, before they are repeated
  int64_t length = 0;           // S, the keys
  bool causal = false;          // no key is after its query
  Value start;                  // of a decoding step: the position of its one query, i32 [1]
  Value query_projection;       // x W_q if the mixture has a dot product
  Value gate_weights;           // absent: every term has weight 1
  int64_t gate_index = 0;

  // `value` times this term's gate weight.
  Value Gated(const Scope& scope, Value value) const;
  // The rows that a term needs of a table [H, N, width] with one row for each query: all rows, or
  // the row of the step. So a step gates and multiplies only one row, however long the table is.
  Value QueryRows(const Scope& scope, Value table) const;
};

// The rules of one term.
struct TermRules {
  const ScoreTerm& term;
  const AttentionConfig& attention;
  const FieldReport& in_attention;  // of the mixture's message
  const FieldReport& in_term;       // of the term's own
};

struct TermKind {
  TermTraits (*traits)(const ScoreTerm& term) = nullptr;
  // Checks the term's fields together; null where the rules of single fields suffice.
  void (*validate)(const TermRules& rules) = nullptr;
  // Adds the term, whose parameters are in `scope`, to `operands`.
  void (*build)(const Scope& scope, const ScoreTerm& term, const TermInput& input,
                AttentionOperands& operands) = nullptr;
};

// The row of the term's kind; null if the term names none.
const TermKind* FindTermKind(const ScoreTerm& term);

// The name of the term's parameters: the term's name, or else its kind.
std::string TermName(const ScoreTerm& term);

// Where a mixture has the parameters of a term. Those of an unnamed dot product lie beside the
// mixture's own.
Scope TermScope(const Scope& mixture, const ScoreTerm& term);

}  // namespace syntra
