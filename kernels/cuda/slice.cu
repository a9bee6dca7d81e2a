// SPDX-License-Identifier: Apache-2.0
// slice: the entries of a part of an axis.
#include "kernels/cuda/strided.h"

namespace syntra {

std::optional<BoundKernel> cuda_slice(const OpCall& call) {
  if (!AreActivations(call)) return std::nullopt;
  return gpu::BindPieces(SlicePieces(call));
}

}  // namespace syntra
