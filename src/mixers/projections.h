// SPDX-License-Identifier: Apache-2.0
// The projections around attention of several heads: parameters `query`, `key`, `value` and
// `output` of a scope.
#pragma once

#include "nn/scope.h"

namespace syntra {

// H heads of K columns.
struct Heads {
  int64_t count, size;
  double dropout = 0;  // of the attention probabilities, as HeadDropout does it

  int64_t columns() const { return count * size; }
};

// Projections of x [B, T, D], each [B, T, H * K]. The scores' factor 1 / sqrt(K) is in the initial
// query weights (T5).
Value ProjectQuery(const Scope& scope, const Heads& heads, Value x);
Value ProjectKey(const Scope& scope, const Heads& heads, Value x);
Value ProjectValue(const Scope& scope, const Heads& heads, Value x);
// mixed [B, T, H * K] as [B, T, width].
Value ProjectOutput(const Scope& scope, Value mixed, int64_t width);

}  // namespace syntra
