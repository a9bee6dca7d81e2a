// SPDX-License-Identifier: Apache-2.0
// transpose: axes in another order.
#include "kernels/cuda/strided.h"

namespace syntra {

std::optional<BoundKernel> cuda_transpose(const OpCall& call) {
  if (!AreActivations(call)) return std::nullopt;
  return gpu::BindPieces(TransposePieces(call));
}

}  // namespace syntra
