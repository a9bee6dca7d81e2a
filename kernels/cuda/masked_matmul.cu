// SPDX-License-Identifier: Apache-2.0
// masked_matmul: a product whose result is then masked, by the kernel that computes it or by one of
// its own.
#include "kernels/cuda/matmul.h"

namespace syntra {

std::optional<BoundKernel> cuda_masked_matmul(const OpCall& call) {
  return gpu::BindMatmul(call, MatmulCall::OfMasked(call));
}

}  // namespace syntra
