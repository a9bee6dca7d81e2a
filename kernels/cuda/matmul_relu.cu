// SPDX-License-Identifier: Apache-2.0
// matmul_relu: a product with a ReLU, in one kernel of ours or two.
#include "kernels/matmul_relu_call.h"

#include "kernels/cuda/matmul.h"

namespace syntra {

std::optional<BoundKernel> cuda_matmul_relu(const OpCall& call) {
  return BindMatmulRelu(
      call, [](const OpCall& each) { return gpu::BindMatmul(each, MatmulCall::OfRelu(each)); });
}

}  // namespace syntra
