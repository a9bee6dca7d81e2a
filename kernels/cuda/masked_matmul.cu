// SPDX-License-Identifier: Apache-2.0
// masked_matmul: a product with the library's gradient of a ReLU as its epilogue.
#include "kernels/cuda/matmul.h"

namespace syntra {

std::optional<BoundKernel> cuda_masked_matmul(const OpCall& call) {
  return gpu::BindMatmul(call, MatmulCall::OfMasked(call));
}

}  // namespace syntra
