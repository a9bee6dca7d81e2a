// SPDX-License-Identifier: Apache-2.0
// broadcast_to: a broadcast copy, or the product with a factor.
#include "kernels/cuda/strided.h"

namespace syntra {

std::optional<BoundKernel> cuda_broadcast_to(const OpCall& call) {
  if (!AreActivations(call)) return std::nullopt;
  return gpu::BindStrided(
      StridedCall::Broadcast(call, StridedOp::kMultiply, call.outputs[0].shape));
}

}  // namespace syntra
