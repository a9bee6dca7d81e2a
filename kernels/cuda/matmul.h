// SPDX-License-Identifier: Apache-2.0
// The product kernel, for ops that do more to a product.
#pragma once

#include "kernels/matmul_call.h"

namespace syntra::gpu {

BoundKernel BindMatmul(const OpCall& call, const MatmulCall& matmul);

}  // namespace syntra::gpu
