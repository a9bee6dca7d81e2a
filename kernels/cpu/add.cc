// SPDX-License-Identifier: Apache-2.0
// add: a broadcast sum.
#include "kernels/cpu/strided.h"

namespace syntra {

std::optional<BoundKernel> cpu_add(const OpCall& call) {
  if (!AreActivations(call)) return std::nullopt;
  return BindStrided(StridedCall::Broadcast(call, StridedOp::kAdd, call.outputs[0].shape));
}

}  // namespace syntra
