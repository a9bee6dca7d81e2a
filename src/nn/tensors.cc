// SPDX-License-Identifier: Apache-2.0
#include "nn/tensors.h"

namespace syntra {

Value Reshape(const Scope& scope, Value x, Attributes::Integers shape) {
  return scope.One("reshape", {{"shape", std::move(shape)}}, {x});
}

Value Transpose(const Scope& scope, Value x, Attributes::Integers axes) {
  return scope.One("transpose", {{"axes", std::move(axes)}}, {x});
}

Value Slice(const Scope& scope, Value x, int64_t axis, int64_t begin, int64_t length) {
  return scope.One("slice", {{"axis", axis}, {"begin", begin}, {"length", length}}, {x});
}

Value First(const Scope& scope, Value x, int64_t axis, int64_t length) {
  const int64_t extent = scope.TypeOf(x).shape[static_cast<int>(axis)];
  return extent > length ? Slice(scope, x, axis, 0, length) : x;
}

Value Activation(const Scope& scope, const std::string& kind, Value x) {
  return scope.One("activation", {{"kind", kind}}, {x});
}

Value Add(const Scope& scope, Value a, Value b) { return scope.One("add", {}, {a, b}); }

Value Multiply(const Scope& scope, Value a, Value b) { return scope.One("multiply", {}, {a, b}); }

Value WithoutPadding(const Scope& scope, Value x, Value segments) {
  const TensorType type = scope.TypeOf(x);
  const Value mask = scope.One("nonzero", {{"dtype", std::string(NameOf(type.dtype))}}, {segments});
  return Multiply(scope, x, Reshape(scope, mask, {type.shape[0], type.shape[1], 1}));
}

}  // namespace syntra
