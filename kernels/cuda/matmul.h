// SPDX-License-Identifier: Apache-2.0
// The matmul kernel, for other ops that contain a matrix product.
#pragma once

#include "kernels/matmul_call.h"

namespace syntra::gpu {

BoundKernel BindMatmul(const OpCall& call, const MatmulCall& matmul);

}  // namespace syntra::gpu
