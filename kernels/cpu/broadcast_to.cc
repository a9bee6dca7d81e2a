// SPDX-License-Identifier: Apache-2.0
// broadcast_to: a broadcast copy, or the product with a factor.
#include "kernels/cpu/strided.h"

namespace syntra {

std::optional<BoundKernel> cpu_broadcast_to(const OpCall& call) {
  if (!AreActivations(call)) return std::nullopt;
  return BindStrided(StridedCall::Broadcast(call, StridedOp::kMultiply, call.outputs[0].shape));
}

}  // namespace syntra
