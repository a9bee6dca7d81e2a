// SPDX-License-Identifier: Apache-2.0
// The products of shared attention on Hopper GPUs, in bf16 for heads of 64 columns.
#pragma once

#include "kernels/cuda/attention_mix.h"

namespace syntra::attention {

// Whether this thread's GPU has the kernel, and it takes a call of these sizes.
template <bool kTransposed>
bool HopperMixes(const SharedScores<BFloat16>& scores);

// MixValues or, if kTransposed, MixGradients.
template <bool kTransposed>
void MixOnHopper(const KernelArguments& arguments, const SharedScores<BFloat16>& scores,
                 const Mixed<BFloat16>& mixed);

// Whether this thread's GPU has the kernel for sums of dS, and it takes a call of these sizes.
bool HopperSums(const Dimensions& z);
// The parts of the batch that it computes apart.
int64_t PartsOnHopper(const Dimensions& z);
// Computes the parts of the sums.
void SumOnHopper(const KernelArguments& arguments, const Dimensions& z,
                 const ScoreSums<BFloat16>& to, const BFloat16* g, const BFloat16* value,
                 const float* delta);

}  // namespace syntra::attention
