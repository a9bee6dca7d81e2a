// SPDX-License-Identifier: Apache-2.0
// The products that a call of batch_matmul stands for (kernels/ops/batch_matmul.cc), for all
// backends.
#pragma once

#include <algorithm>

#include "kernels/matmul_call.h"

namespace syntra {

// Whether operand `number` of a call, 0 for a, 1 for b or 2 for c, has its rows first.
inline bool HasRowsFirst(const Attributes& attributes, int64_t number) {
  return std::ranges::count(attributes.List("rows_first"), number) > 0;
}

// An operand [.., H, R, C] or, with its rows first, [.., R, H, C]: a matrix [R, C] of each head for
// each index of the axes before. [R, C] alone is one head.
struct BatchOperand {
  int64_t heads = 1, rows = 0, columns = 0;
  bool rows_first = false;

  static BatchOperand Of(const Attributes& attributes, int64_t number, const Shape& shape) {
    if (shape.rank() == 2) return {1, shape[0], shape[1], false};
    const bool rows_first = HasRowsFirst(attributes, number);
    return {shape[rows_first ? -2 : -3], shape[rows_first ? -3 : -2], shape[-1], rows_first};
  }

  // In elements, from one row, head or index of the axes before to the next.
  int64_t row_stride() const { return rows_first ? heads * columns : columns; }
  int64_t head_stride() const { return rows_first ? columns : rows * columns; }
  int64_t outer_stride() const { return heads * rows * columns; }
};

struct BatchMatmulCall {
  GemmProblem problem;  // of one head
  int64_t outer = 1;    // the indices of the axes before
  BatchOperand a, b, c;

  static BatchMatmulCall Of(const OpCall& call) {
    const Shape& result = call.outputs[0].shape;
    BatchMatmulCall batch{.a = BatchOperand::Of(call.attributes, 0, call.inputs[0].shape),
                          .b = BatchOperand::Of(call.attributes, 1, call.inputs[1].shape),
                          .c = BatchOperand::Of(call.attributes, 2, result)};
    batch.outer = result.size() / batch.c.outer_stride();
    const bool transpose_a = call.attributes.Flag("transpose_a");
    batch.problem = {.m = batch.c.rows,
                     .n = batch.c.columns,
                     .k = transpose_a ? batch.a.rows : batch.a.columns,
                     .transpose_a = transpose_a,
                     .transpose_b = call.attributes.Flag("transpose_b"),
                     .a_stride = batch.a.row_stride(),
                     .b_stride = batch.b.row_stride(),
                     .c_stride = batch.c.row_stride(),
                     .ab = MatmulCall::TypeOf(call),
                     .c = call.outputs[0].dtype,
                     .accumulate = Accumulates(call, 0)};
    return batch;
  }

  int64_t heads() const { return c.heads; }
};

}  // namespace syntra
