// SPDX-License-Identifier: Apache-2.0
#include "mixers/score_term.h"

#include "base/name_table.h"
#include "configs/schema/kind_of.h"
#include "nn/tensors.h"

namespace syntra {

#define SYNTRA_SCORE_TERM(kind) TermKind term_##kind();
#include "mixers/terms.def"
#undef SYNTRA_SCORE_TERM

namespace {

const NameTable<TermKind>& TermKinds() {
  static const NameTable<TermKind> table = [] {
    NameTable<TermKind> kinds("score term");
#define SYNTRA_SCORE_TERM(kind) kinds.Add(#kind, term_##kind());
#include "mixers/terms.def"
#undef SYNTRA_SCORE_TERM
    return kinds;
  }();
  return table;
}

}  // namespace

Value TermInput::Gated(const Scope& scope, Value value) const {
  if (!gate_weights) return value;
  return Multiply(scope, value, Slice(scope, gate_weights, 0, gate_index, 1));
}

Value TermInput::QueryRows(const Scope& scope, Value table) const {
  if (!start) return table;
  return GatherRows(scope, table, 1, start);
}

const TermKind* FindTermKind(const ScoreTerm& term) {
  const std::string kind = KindOf(term);
  return kind.empty() ? nullptr : &TermKinds().Get(kind);
}

std::string TermName(const ScoreTerm& term) {
  return term.name().empty() ? KindOf(term) : term.name();
}

Scope TermScope(const Scope& mixture, const ScoreTerm& term) {
  return term.has_dot_product() && term.name().empty() ? mixture : mixture / TermName(term);
}

}  // namespace syntra
