// SPDX-License-Identifier: Apache-2.0
// Learned tables of scores, f32 [H or 1, N or 1, N].
#pragma once

#include <fmt/format.h>

#include "mixers/score_term.h"

namespace syntra {

// How the first values are drawn. `stored` is the shape in which the authors store the table; it
// determines TensorFlow's fans.
Initializer TableInitializer(TableInitialization kind, double deviation, const Shape& stored,
                             int64_t rows, int64_t columns);

// Adds `table` to those that the mixture has. The shortest is the limit.
void AddTable(const Scope& scope, Value table, AttentionOperands& operands);

// The deviation of `term`, a message with a TableInitialization, is only set where it counts.
template <typename Term>
void CheckDeviationIsUsed(const Term& term, const FieldReport& report) {
  if (term.deviation() == Term::default_instance().deviation()) return;
  if (term.initialization() == TableInitialization::NORMAL) return;
  report.Add(
      {report.Path("deviation"), report.Path("initialization")},
      fmt::format("{} has no effect with {}; set initialization: NORMAL or remove it",
                  report.Path("deviation"), TableInitialization_Name(term.initialization())));
}

}  // namespace syntra
