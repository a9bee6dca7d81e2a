// SPDX-License-Identifier: Apache-2.0
// batch_matmul: one batch of cuBLASLt's products.
#include "kernels/cuda/matmul.h"

namespace syntra {

std::optional<BoundKernel> cuda_batch_matmul(const OpCall& call) {
  return gpu::BindMatmul(call, MatmulCall::OfBatch(call));
}

}  // namespace syntra
