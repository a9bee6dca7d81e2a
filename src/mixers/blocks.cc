// SPDX-License-Identifier: Apache-2.0
#include "mixers/blocks.h"

#include "nn/tensors.h"

namespace syntra {

Value PadToMultiple(const Scope& scope, Value x, int64_t size) {
  const int64_t length = scope.TypeOf(x).shape[1];
  return Pad(scope, x, 1, 0, (size - length % size) % size);
}

Value AsRows(const Scope& scope, Value segments) {
  const Shape shape = scope.TypeOf(segments).shape;
  return Reshape(scope, Cast(scope, segments, DType::kF32), {shape[0], shape[1], 1});
}

Value AsSegments(const Scope& scope, Value rows) {
  const Shape shape = scope.TypeOf(rows).shape;
  return Cast(scope, Reshape(scope, rows, {shape[0], shape[1]}), DType::kI32);
}

Value AttendFrom(const Scope& scope, int64_t heads, AttentionOperands operands, AttentionMask mask,
                 int64_t from, int64_t to) {
  const int64_t length = scope.TypeOf(operands.key).shape[1], queries = to - from;
  if (queries < length) {
    operands.query = Slice(scope, operands.query, 1, from, queries);
    mask.query_segments =
        AsSegments(scope, Slice(scope, AsRows(scope, mask.query_segments), 1, from, queries));
    if (operands.relative_bias) {
      operands.relative_bias =
          Slice(scope, operands.relative_bias, 1, length - to, queries + length - 1);
      operands.bias_reach = 0;  // which counts from the first query
    }
  }
  return Attention(scope, heads, operands, mask);
}

}  // namespace syntra
