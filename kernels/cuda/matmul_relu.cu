// SPDX-License-Identifier: Apache-2.0
// matmul_relu: a product with the library's ReLU as its epilogue.
#include "kernels/cuda/matmul.h"

namespace syntra {

std::optional<BoundKernel> cuda_matmul_relu(const OpCall& call) {
  return gpu::BindMatmul(call, MatmulCall::OfRelu(call));
}

}  // namespace syntra
