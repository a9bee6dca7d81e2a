// SPDX-License-Identifier: Apache-2.0
// The copy kernel, for kernels that convert operands or results on the way.
#pragma once

#include "kernels/op.h"

namespace syntra {

// f32 and bf16, in either direction; never nullopt for these.
std::optional<BoundKernel> cpu_copy(const OpCall& call);

}  // namespace syntra
