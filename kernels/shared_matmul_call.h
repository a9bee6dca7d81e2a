// SPDX-License-Identifier: Apache-2.0
// The extents of a call of shared_matmul or its gradient (kernels/ops/shared_matmul.cc), for all
// backends.
#pragma once

#include "kernels/gemm_problem.h"
#include "kernels/operands.h"

namespace syntra {

struct SharedMatmulCall {
  int64_t groups, batch, to, from, columns;  // columns of a group
  bool transpose;
  DType dtype;  // of the product

  static SharedMatmulCall Of(const OpCall& call) {
    const Shape &w = call.inputs[0].shape, &x = call.inputs[1].shape;
    const int64_t groups = w.rank() == 3 ? w[0] : 1;
    return {.groups = groups,
            .batch = x[0],
            .to = call.outputs[0].shape[1],
            .from = x[1],
            .columns = x[2] / groups,
            .transpose = call.attributes.Flag("transpose"),
            .dtype = call.inputs[1].dtype};
  }

  static SharedMatmulCall OfGrad(const OpCall& call) {
    const Shape &w = call.outputs[0].shape, &a = call.inputs[0].shape, &c = call.inputs[1].shape;
    const int64_t groups = w.rank() == 3 ? w[0] : 1;
    return {.groups = groups,
            .batch = a[0],
            .to = a[1],
            .from = c[1],
            .columns = a[2] / groups,
            .transpose = false,
            .dtype = call.inputs[0].dtype};
  }

  int64_t width() const { return groups * columns; }

  // y[b, :, group] = w_group x[b, :, group].
  GemmProblem Product(bool accumulate) const {
    return {.m = to,
            .n = columns,
            .k = from,
            .transpose_a = transpose,
            .b_stride = groups > 1 ? width() : 0,
            .c_stride = groups > 1 ? width() : 0,
            .ab = dtype,
            .c = dtype,
            .accumulate = accumulate};
  }

  // The part of example b: a[b, :, group] c[b, :, group]^T.
  GemmProblem GradientProduct(bool accumulate) const {
    return {.m = to,
            .n = from,
            .k = columns,
            .transpose_b = true,
            .a_stride = groups > 1 ? width() : 0,
            .b_stride = groups > 1 ? width() : 0,
            .ab = dtype,
            .c = DType::kF32,
            .accumulate = accumulate};
  }
};

}  // namespace syntra
