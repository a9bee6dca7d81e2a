// SPDX-License-Identifier: Apache-2.0
// The hidden layer of the dense terms.
#pragma once

#include "mixers/score_term.h"

namespace syntra {

// relu(x W1 + b1), [B, T, H * units]. With share_query it is relu of the query projection, as in
// the authors' code.
struct DenseHidden {
  int64_t units = 0;  // per head
  bool share_query = false, bias = false;

  // The hidden layer that a term's message describes. `hidden: 0` means as many units as the head
  // has.
  template <typename Term>
  static DenseHidden Of(const Term& term, int64_t head_size) {
    return {term.hidden() > 0 ? term.hidden() : head_size, term.share_query(), term.bias()};
  }

  Value Build(const Scope& scope, const TermInput& input) const;

  // A layer that is also the query projection has the query's width.
  void Validate(const TermRules& rules) const;
};

}  // namespace syntra
