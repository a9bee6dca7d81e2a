// SPDX-License-Identifier: Apache-2.0
// Products of E with activations on Hopper GPUs, in bf16 for heads of 64 columns.
#pragma once

#include "kernels/cuda/attention_shared.h"

namespace syntra::attention {

// Whether this thread's GPU has the kernel, and it takes a call of these sizes.
template <bool kTransposed>
bool HopperMixes(const SharedScores<BFloat16>& scores);

// MixValues or, if kTransposed, MixGradients.
template <bool kTransposed>
void MixOnHopper(const KernelArguments& arguments, const SharedScores<BFloat16>& scores,
                 const Mixed<BFloat16>& mixed);

}  // namespace syntra::attention
