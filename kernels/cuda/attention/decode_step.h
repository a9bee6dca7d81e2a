// SPDX-License-Identifier: Apache-2.0
// Attention in a decode step, which has one query for each (example, head). It computes a dot
// product for each key, since tiles would have only one row.
#pragma once

#include "kernels/attention_call.h"
#include "kernels/bound_kernel.h"

namespace syntra::attention {

// Whether the decode-step kernel can compute calls of these dimensions.
bool IsDecodeStep(const Dimensions& z);
BoundKernel BindDecodeStep(const OpCall& call, const Dimensions& z);

}  // namespace syntra::attention
