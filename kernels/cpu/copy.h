// SPDX-License-Identifier: Apache-2.0
// The copy kernel, for other kernels that convert their operands or results.
#pragma once

#include "kernels/bound_kernel.h"

namespace syntra {

// Between f32 and bf16 in either direction; never nullopt for these types.
std::optional<BoundKernel> cpu_copy(const OpCall& call);

}  // namespace syntra
