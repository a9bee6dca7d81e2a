// SPDX-License-Identifier: Apache-2.0
// concatenate: tensors one after the other.
#include "kernels/cuda/strided.h"

namespace syntra {

std::optional<BoundKernel> cuda_concatenate(const OpCall& call) {
  if (!AreActivations(call)) return std::nullopt;
  return gpu::BindPieces(ConcatenatePieces(call));
}

}  // namespace syntra
