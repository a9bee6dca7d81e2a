// SPDX-License-Identifier: Apache-2.0
// matmul_relu: a product followed by a ReLU.
#include "kernels/matmul_relu_call.h"

#include "kernels/cpu/matmul.h"

namespace syntra {

std::optional<BoundKernel> cpu_matmul_relu(const OpCall& call) {
  return BindMatmulRelu(
      call, [](const OpCall& each) { return BindMatmul(each, MatmulCall::OfRelu(each)); });
}

}  // namespace syntra
