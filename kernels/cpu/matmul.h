// The product kernel, for ops that are products of reshaped operands.
#pragma once

#include "kernels/op.h"

namespace syntra {

std::optional<BoundKernel> cpu_matmul(const OpCall& call);

}  // namespace syntra
