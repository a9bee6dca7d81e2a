// SPDX-License-Identifier: Apache-2.0
// slice: the entries of a part of an axis.
#include "kernels/cpu/strided.h"

namespace syntra {

std::optional<BoundKernel> cpu_slice(const OpCall& call) {
  if (!AreActivations(call)) return std::nullopt;
  return BindPieces(SlicePieces(call));
}

}  // namespace syntra
