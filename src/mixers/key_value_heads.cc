// SPDX-License-Identifier: Apache-2.0
#include "mixers/key_value_heads.h"

#include <fmt/format.h>

#include "nn/tensors.h"

namespace syntra {

void ValidateKeyValueHeads(const FieldReport& report, int64_t heads, int64_t key_value_heads) {
  if (key_value_heads == 0 || heads % key_value_heads == 0) return;
  const std::string own = report.Path("key_value_heads"), all = report.Path("heads");
  report.Add({own, all}, fmt::format("{} {} does not divide {} {}; choose one that does", own,
                                     key_value_heads, all, heads));
}

Value RepeatHeads(const Scope& scope, Value x, int64_t key_value_heads, int64_t heads) {
  if (key_value_heads == heads) return x;
  const TensorType type = scope.TypeOf(x);
  const int64_t rows = type.shape[0], length = type.shape[1],
                size = type.shape[2] / key_value_heads;
  const Value groups = Reshape(scope, x, {rows, length, key_value_heads, 1, size});
  const Value all = BroadcastTo(
      scope, groups, {type.dtype, {rows, length, key_value_heads, heads / key_value_heads, size}});
  return Reshape(scope, all, {rows, length, heads * size});
}

}  // namespace syntra
