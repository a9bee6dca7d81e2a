// SPDX-License-Identifier: Apache-2.0
// The matmul kernel, for other ops that contain a matrix product.
#pragma once

#include "kernels/matmul_call.h"

namespace syntra {

std::optional<BoundKernel> cpu_matmul(const OpCall& call);

BoundKernel BindMatmul(const OpCall& call, const MatmulCall& product);

// Gradients of weights, the outputs from `first_c` on: c_i = a^T b_i, where a is the first input
// and the b_i are those from `first_b` on. `problem`: of the first. nullopt if there is no kernel
// for all of them at once.
std::optional<BoundKernel> BindTransposed(const OpCall& call, const GemmProblem& problem,
                                          size_t first_b, size_t first_c);

}  // namespace syntra
