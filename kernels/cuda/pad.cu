// SPDX-License-Identifier: Apache-2.0
// pad: zeros before and after an axis.
#include "kernels/cuda/strided.h"

namespace syntra {

std::optional<BoundKernel> cuda_pad(const OpCall& call) {
  if (!AreActivations(call)) return std::nullopt;
  return gpu::BindPieces(PadPieces(call));
}

}  // namespace syntra
