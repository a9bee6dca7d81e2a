// SPDX-License-Identifier: Apache-2.0
// The matmul kernel, for other ops that contain a matrix product.
#pragma once

#include "kernels/matmul_call.h"

namespace syntra {

std::optional<BoundKernel> cpu_matmul(const OpCall& call);

// nullopt if an operand is neither f32 nor bf16.
std::optional<BoundKernel> BindMatmul(const OpCall& call, const MatmulCall& product);

}  // namespace syntra
