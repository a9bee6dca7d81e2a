// SPDX-License-Identifier: Apache-2.0
// The copy kernel, for calls that come down to one.
#pragma once

#include "kernels/op.h"

namespace syntra {

// f32 and bf16, in either direction; never nullopt for these.
std::optional<BoundKernel> cuda_copy(const OpCall& call);

}  // namespace syntra
