// SPDX-License-Identifier: Apache-2.0
// The product kernel, for ops that are products of reshaped operands or do more to a product.
#pragma once

#include "kernels/matmul_call.h"

namespace syntra {

std::optional<BoundKernel> cpu_matmul(const OpCall& call);

// nullopt: an operand is neither f32 nor bf16.
std::optional<BoundKernel> BindMatmul(const OpCall& call, const MatmulCall& product);

}  // namespace syntra
