// SPDX-License-Identifier: Apache-2.0
#include "nn/tensors.h"

namespace syntra {

Value Reshape(const Scope& scope, Value x, const Shape& shape) {
  return scope.One("reshape", {{"shape", IntegersOf(shape)}}, {x});
}

Value Transpose(const Scope& scope, Value x, Attributes::Integers axes) {
  return scope.One("transpose", {{"axes", std::move(axes)}}, {x});
}

Value Slice(const Scope& scope, Value x, int64_t axis, int64_t begin, int64_t length) {
  return scope.One("slice", {{"axis", axis}, {"begin", begin}, {"length", length}}, {x});
}

Value Concatenate(const Scope& scope, int64_t axis, const std::vector<Value>& parts) {
  return parts.size() == 1 ? parts[0] : scope.One("concatenate", {{"axis", axis}}, parts);
}

Value Pad(const Scope& scope, Value x, int64_t axis, int64_t before, int64_t after) {
  if (before == 0 && after == 0) return x;
  return scope.One("pad", {{"axis", axis}, {"before", before}, {"after", after}}, {x});
}

Value First(const Scope& scope, Value x, int64_t axis, int64_t length) {
  const int64_t extent = scope.TypeOf(x).shape[static_cast<int>(axis)];
  return extent > length ? Slice(scope, x, axis, 0, length) : x;
}

Value GatherRows(const Scope& scope, Value x, int64_t axis, Value rows) {
  return scope.One("gather_rows", {{"axis", axis}}, {x, rows});
}

Value Activation(const Scope& scope, const std::string& kind, Value x) {
  return scope.One("activation", {{"kind", kind}}, {x});
}

Value Add(const Scope& scope, Value a, Value b) { return scope.One("add", {}, {a, b}); }

Value Multiply(const Scope& scope, Value a, Value b) { return scope.One("multiply", {}, {a, b}); }

Value AffineMap(const Scope& scope, Value x, double scale, double shift) {
  return scope.One("affine", {{"scale", scale}, {"shift", shift}}, {x});
}

Value BatchProduct(const Scope& scope, Value a, Value b, DType dtype, Transposed transposed,
                   const Attributes::Integers& rows_first) {
  return scope.One("batch_matmul",
                   {{"transpose_a", transposed == Transposed::kLeft},
                    {"transpose_b", transposed == Transposed::kRight},
                    {"dtype", std::string(NameOf(dtype))},
                    {"rows_first", rows_first}},
                   {a, b});
}

Value Product(const Scope& scope, Value a, Value b, DType dtype, Transposed transposed) {
  return scope.One("matmul",
                   {{"transpose_a", transposed == Transposed::kLeft},
                    {"transpose_b", transposed == Transposed::kRight},
                    {"dtype", std::string(NameOf(dtype))}},
                   {a, b});
}

Value Cast(const Scope& scope, Value x, DType dtype) {
  const DType from = scope.TypeOf(x).dtype;
  if (from == dtype) return x;
  const bool whole = from == DType::kI32 || dtype == DType::kI32;
  return scope.One(whole ? "cast" : "copy", {{"dtype", std::string(NameOf(dtype))}}, {x});
}

Value SumTo(const Scope& scope, Value x, const Shape& shape, Value factor) {
  return scope.One("sum_to", {{"shape", IntegersOf(shape)}, {"dtype", std::string("f32")}},
                   {x, factor});
}

Value BroadcastTo(const Scope& scope, Value x, const TensorType& type) {
  return scope.One("broadcast_to",
                   {{"shape", IntegersOf(type.shape)}, {"dtype", std::string(NameOf(type.dtype))}},
                   {x, {}});
}

// The index of the larger of the bound and x, which is the bound's if they are equal.
Value IsAbove(const Scope& scope, Value x, double bound) {
  const Shape shape = scope.TypeOf(x).shape;
  const Value column = Reshape(scope, x, {shape.size(), 1});
  const Value bounds = scope.program().FillConstant(scope.TypeOf(column), bound);
  const Value pairs = Concatenate(scope, 1, {bounds, column});
  const Value larger = scope.program().Record("reduce_max", {}, {pairs})[1];
  return Reshape(scope, Cast(scope, larger, DType::kF32), shape);
}

Value InHeads(const Scope& scope, Value x, int64_t heads) {
  const Shape shape = scope.TypeOf(x).shape;
  return Reshape(scope, x, {shape[0], shape[1], heads, shape[2] / heads});
}

Value Joined(const Scope& scope, Value x) {
  const Shape shape = scope.TypeOf(x).shape;
  return Reshape(scope, x, {shape[0], shape[1], shape[2] * shape[3]});
}

Value NotZero(const Scope& scope, Value x, DType dtype) {
  return scope.One("nonzero", {{"dtype", std::string(NameOf(dtype))}},
                   {Cast(scope, x, DType::kI32)});
}

Value WithoutPadding(const Scope& scope, Value x, Value segments) {
  const TensorType type = scope.TypeOf(x);
  const Value mask = NotZero(scope, segments, type.dtype);
  return Multiply(scope, x, Reshape(scope, mask, {type.shape[0], type.shape[1], 1}));
}

}  // namespace syntra
