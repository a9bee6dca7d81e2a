// SPDX-License-Identifier: Apache-2.0
// multiply: a broadcast product.
#include "kernels/cpu/strided.h"

namespace syntra {

std::optional<BoundKernel> cpu_multiply(const OpCall& call) {
  if (!AreActivations(call)) return std::nullopt;
  return BindStrided(StridedCall::Broadcast(call, StridedOp::kMultiply, call.outputs[0].shape));
}

}  // namespace syntra
