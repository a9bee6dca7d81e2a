// SPDX-License-Identifier: Apache-2.0
// store: copies a tensor to memory outside the program.
#include "kernels/cuda/copy.h"

namespace syntra {

std::optional<BoundKernel> cuda_store(const OpCall& call) { return cuda_copy(call); }

}  // namespace syntra
