// SPDX-License-Identifier: Apache-2.0
// attention's forward pass on Hopper GPUs, in bf16 for heads of 64 columns. Scores are products of
// queries and keys, of u and positions, or both, perhaps with a bias and a table
// (HopperServesProducts); or products of factors, perhaps with a bias (factors.h).
#pragma once

#include "kernels/cuda/attention/forward.h"

namespace syntra::attention {

// Whether this thread's GPU has the kernel and the kernel takes heads of this size.
bool HopperServesForward(const Dimensions& z);

// Computes y and log_sum_exp. `forward.terms` must be prepared (PreparedTerms), and its scores of a
// kind that this kernel serves (HopperServesProducts, HopperServesFactors).
void RunForwardOnHopper(const KernelArguments& arguments, const Forward<BFloat16>& forward);

}  // namespace syntra::attention
