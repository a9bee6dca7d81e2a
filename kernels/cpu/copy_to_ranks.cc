// SPDX-License-Identifier: Apache-2.0
// copy_to_ranks: a copy; only its gradient exchanges something.
#include "kernels/cpu/copy.h"

namespace syntra {

std::optional<BoundKernel> cpu_copy_to_ranks(const OpCall& call) { return cpu_copy(call); }

}  // namespace syntra
