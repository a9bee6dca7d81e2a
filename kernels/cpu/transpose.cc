// SPDX-License-Identifier: Apache-2.0
// transpose: axes in another order.
#include "kernels/cpu/strided.h"

namespace syntra {

std::optional<BoundKernel> cpu_transpose(const OpCall& call) {
  if (!AreActivations(call)) return std::nullopt;
  return BindPieces(TransposePieces(call));
}

}  // namespace syntra
