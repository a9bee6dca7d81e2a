// SPDX-License-Identifier: Apache-2.0
// pad: zeros before and after an axis.
#include "kernels/cpu/strided.h"

namespace syntra {

std::optional<BoundKernel> cpu_pad(const OpCall& call) {
  if (!AreActivations(call)) return std::nullopt;
  return BindPieces(PadPieces(call));
}

}  // namespace syntra
