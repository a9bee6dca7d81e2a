// SPDX-License-Identifier: Apache-2.0
// concatenate: tensors one after the other.
#include "kernels/cpu/strided.h"

namespace syntra {

std::optional<BoundKernel> cpu_concatenate(const OpCall& call) {
  if (!AreActivations(call)) return std::nullopt;
  return BindPieces(ConcatenatePieces(call));
}

}  // namespace syntra
