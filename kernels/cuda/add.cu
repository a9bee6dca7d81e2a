// SPDX-License-Identifier: Apache-2.0
// add: a broadcast sum.
#include "kernels/cuda/strided.h"

namespace syntra {

std::optional<BoundKernel> cuda_add(const OpCall& call) {
  if (!AreActivations(call)) return std::nullopt;
  return gpu::BindStrided(StridedCall::Broadcast(call, StridedOp::kAdd, call.outputs[0].shape));
}

}  // namespace syntra
