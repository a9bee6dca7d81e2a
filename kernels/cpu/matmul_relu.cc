// SPDX-License-Identifier: Apache-2.0
// matmul_relu: a product followed by the library's ReLU.
#include "kernels/cpu/matmul.h"

namespace syntra {

std::optional<BoundKernel> cpu_matmul_relu(const OpCall& call) {
  return BindMatmul(call, MatmulCall::OfRelu(call));
}

}  // namespace syntra
