// SPDX-License-Identifier: Apache-2.0
// The copy kernel, for other ops whose call is only a copy.
#pragma once

#include "kernels/bound_kernel.h"

namespace syntra {

// Between f32 and bf16 in either direction; never nullopt for these types.
std::optional<BoundKernel> cuda_copy(const OpCall& call);

}  // namespace syntra
