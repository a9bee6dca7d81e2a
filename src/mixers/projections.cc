// SPDX-License-Identifier: Apache-2.0
#include "mixers/projections.h"

#include "nn/layers.h"

namespace syntra {

Value ProjectQuery(const Scope& scope, const Heads& heads, Value x) {
  return QueryProjection(scope, x, heads.count, heads.size);
}

Value ProjectKey(const Scope& scope, const Heads& heads, Value x) {
  return ToHeads(scope, "key", x, heads.columns());
}

Value ProjectValue(const Scope& scope, const Heads& heads, Value x) {
  return HeadDropout(scope, ToHeads(scope, "value", x, heads.columns()), heads.dropout, heads.size);
}

Value ProjectOutput(const Scope& scope, Value mixed, int64_t width) {
  return FromHeads(scope, "output", mixed, width);
}

}  // namespace syntra
