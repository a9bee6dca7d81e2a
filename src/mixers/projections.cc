// SPDX-License-Identifier: Apache-2.0
#include "mixers/projections.h"

#include <cmath>

#include "nn/layers.h"

namespace syntra {

Value Project(const Scope& scope, const std::string& name, Value x, int64_t columns,
              double factor) {
  const auto width = static_cast<double>(scope.TypeOf(x).shape[-1]);
  return Linear(scope, name, x, columns, Initializer::Normal(factor / std::sqrt(width)));
}

Value ProjectQuery(const Scope& scope, const Heads& heads, Value x) {
  const auto rows = static_cast<double>(scope.TypeOf(x).shape[-1] * heads.size);
  return Linear(scope, "query", x, heads.columns(), Initializer::Normal(1 / std::sqrt(rows)));
}

Value ProjectKey(const Scope& scope, const Heads& heads, Value x) {
  return Project(scope, "key", x, heads.columns());
}

Value ProjectValue(const Scope& scope, const Heads& heads, Value x) {
  const Value value = Project(scope, "value", x, heads.columns());
  return HeadDropout(scope, value, heads.dropout, heads.size);
}

Value ProjectOutput(const Scope& scope, Value mixed, int64_t width) {
  const auto columns = static_cast<double>(scope.TypeOf(mixed).shape[-1]);
  return Linear(scope, "output", mixed, width, Initializer::Normal(1 / std::sqrt(columns)));
}

}  // namespace syntra
