// SPDX-License-Identifier: Apache-2.0
// The elementwise calls that are loops over strided operands, for all backends: the sum or the
// product of a and b; without b, a copy of a.
#pragma once

#include "kernels/operands.h"
#include "kernels/strides.h"

namespace syntra {

enum class StridedOp { kAdd, kMultiply };

struct StridedCall {
  StridedLoop<3> loop;  // y, a, b
  StridedOp op = StridedOp::kMultiply;
  DType y, a, b;                       // b: kNone means a factor of one
  int64_t y_offset = 0, a_offset = 0;  // elements before the first one that the loop visits
  bool accumulate = false;

  // y = a op b, where each operand is broadcast to `shape`: usually that of y.
  static StridedCall Broadcast(const OpCall& call, StridedOp op, const Shape& shape) {
    const TensorType &y = call.outputs[0], &a = call.inputs[0], &b = call.inputs[1];
    const auto strides = [&](const TensorType& of) { return BroadcastStrides(of.shape, shape); };
    return {.loop = StridedLoop<3>::Over(shape, {strides(y), strides(a), strides(b)}),
            .op = op,
            .y = y.dtype,
            .a = a.dtype,
            .b = b.dtype,
            .accumulate = Accumulates(call, 0)};
  }

  // A copy of the elements of `shape` with these strides.
  static StridedCall Copy(const Shape& shape, DType dtype, const Strides& y, const Strides& a) {
    return {.loop = StridedLoop<3>::Over(shape, {y, a, Strides{}}),
            .y = dtype,
            .a = dtype,
            .b = DType::kNone};
  }
};

}  // namespace syntra
