// SPDX-License-Identifier: Apache-2.0
// One query for each (example, head), as generation asks for: a dot product for each key instead of
// tiles that would hold one row.
#pragma once

#include "kernels/op.h"
#include "kernels/ops/attention.h"

namespace syntra::attention {

// Whether the step kernel serves calls of these sizes.
bool IsStep(const Sizes& sizes);
BoundKernel BindStep(const OpCall& call, const Sizes& sizes);

}  // namespace syntra::attention
