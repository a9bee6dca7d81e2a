// SPDX-License-Identifier: Apache-2.0
// multiply: a broadcast product.
#include "kernels/cuda/strided.h"

namespace syntra {

std::optional<BoundKernel> cuda_multiply(const OpCall& call) {
  if (!AreActivations(call)) return std::nullopt;
  return gpu::BindStrided(
      StridedCall::Broadcast(call, StridedOp::kMultiply, call.outputs[0].shape));
}

}  // namespace syntra
