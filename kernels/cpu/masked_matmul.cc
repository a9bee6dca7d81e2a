// SPDX-License-Identifier: Apache-2.0
// masked_matmul: a product whose result is masked in place.
#include "kernels/cpu/matmul.h"

namespace syntra {

std::optional<BoundKernel> cpu_masked_matmul(const OpCall& call) {
  return BindMatmul(call, MatmulCall::OfMasked(call));
}

}  // namespace syntra
