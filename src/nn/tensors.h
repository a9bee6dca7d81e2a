// SPDX-License-Identifier: Apache-2.0
// Short names for single ops that layers are composed of. Their contracts are in kernels/ops.
#pragma once

#include "nn/scope.h"

namespace syntra {

// The elements of x in the same order, in another shape.
Value Reshape(const Scope& scope, Value x, const Shape& shape);
// Axis i of the result is axis axes[i] of x.
Value Transpose(const Scope& scope, Value x, Attributes::Integers axes);
// The entries [begin, begin + length) along `axis`.
Value Slice(const Scope& scope, Value x, int64_t axis, int64_t begin, int64_t length);
// The parts one after the other along `axis`; a single part is returned as it is.
Value Concatenate(const Scope& scope, int64_t axis, const std::vector<Value>& parts);
// x with `before` zeros before it and `after` zeros after it along `axis`.
Value Pad(const Scope& scope, Value x, int64_t axis, int64_t before, int64_t after);
// The first `length` entries along `axis`; x itself if there are no more.
Value First(const Scope& scope, Value x, int64_t axis, int64_t length);
// The entries of x along `axis` whose numbers are in `rows`: i32 [R], or i32 [.., R] with such a
// list for each index of the axes before.
Value GatherRows(const Scope& scope, Value x, int64_t axis, Value rows);
// f(x), where `kind` names one of the functions in kernels/math/activation.inc.
Value Activation(const Scope& scope, const std::string& kind, Value x);
// Elementwise, with NumPy's broadcasting; bf16 if one of the two is.
Value Add(const Scope& scope, Value a, Value b);
Value Multiply(const Scope& scope, Value a, Value b);
// scale x + shift.
Value AffineMap(const Scope& scope, Value x, double scale, double shift = 0);
// a b for each index of the leading axes, one of them transposed or none, in the element type.
// Operands in `rows_first` (0 for a, 1 for b, 2 for the result) are [.., R, H, C], not [.., H, R,
// C].
enum class Transposed { kNone, kLeft, kRight };
Value BatchProduct(const Scope& scope, Value a, Value b, DType dtype,
                   Transposed transposed = Transposed::kNone,
                   const Attributes::Integers& rows_first = {});
// a b for matrices, one of them transposed or none; all axes of a but the last count as its rows.
Value Product(const Scope& scope, Value a, Value b, DType dtype,
              Transposed transposed = Transposed::kNone);
// x in the element type; x itself if that is its own. Between i32 and f32: whole numbers of at most
// 2^24, and no gradient.
Value Cast(const Scope& scope, Value x, DType dtype);
// x, times `factor` if there is one, summed over the axes that are 1 in `shape`; f32.
Value SumTo(const Scope& scope, Value x, const Shape& shape, Value factor = {});
// x in this type, repeated along the axes that it lacks or that are 1 in it.
Value BroadcastTo(const Scope& scope, Value x, const TensorType& type);
// 1 where x is above the bound, else 0; both f32. It has no gradient.
Value IsAbove(const Scope& scope, Value x, double bound);
// x [B, T, H * W] as [B, T, H, W].
Value InHeads(const Scope& scope, Value x, int64_t heads);
// x [B, T, H, W] as [B, T, H * W].
Value Joined(const Scope& scope, Value x);
// 1 where a whole number, i32 or f32, is not 0, else 0. For segments this is the mask of the
// positions that are not padding.
Value NotZero(const Scope& scope, Value x, DType dtype = DType::kF32);
// x [B, T, D], zero where segments, i32 [B, T], are 0.
Value WithoutPadding(const Scope& scope, Value x, Value segments);

}  // namespace syntra
