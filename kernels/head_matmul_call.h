// SPDX-License-Identifier: Apache-2.0
// The products that a call of head_matmul or its gradient stands for (kernels/ops/head_matmul.cc),
// for all backends.
#pragma once

#include "kernels/gemm_problem.h"
#include "kernels/op_call.h"

namespace syntra {

struct HeadMatmulCall {
  int64_t rows, heads, in, out;
  DType dtype;  // of x, and of the operands of products
  bool shared;  // all heads have the same weight

  // The sizes of a call whose first inputs are x and the weight.
  static HeadMatmulCall Of(const OpCall& call) {
    const Shape& weight = call.inputs[1].shape;
    return {.rows = call.inputs[0].shape.rows(),
            .heads = call.attributes.Int("heads"),
            .in = weight[-2],
            .out = weight[-1],
            .dtype = call.inputs[0].dtype,
            .shared = weight.rank() == 2};
  }

  // These are products of one head or, if heads share a weight, of all heads together.
  //
  // x W, or dy W^T: from `from` columns of a head to `to`.
  GemmProblem Product(int64_t from, int64_t to, bool transpose_w, bool accumulate) const {
    return {.m = shared ? rows * heads : rows,
            .n = to,
            .k = from,
            .transpose_b = transpose_w,
            .a_stride = shared ? 0 : heads * from,
            .c_stride = shared ? 0 : heads * to,
            .ab = dtype,
            .c = dtype,
            .accumulate = accumulate};
  }

  // x^T dy.
  GemmProblem WeightGradient(bool accumulate) const {
    return {.m = in,
            .n = out,
            .k = shared ? rows * heads : rows,
            .transpose_a = true,
            .a_stride = shared ? 0 : heads * in,
            .b_stride = shared ? 0 : heads * out,
            .ab = dtype,
            .accumulate = accumulate};
  }
};

}  // namespace syntra
