// SPDX-License-Identifier: Apache-2.0
// The products of shared attention on Hopper GPUs, in bf16 for heads of 64 columns.
#pragma once

#include "kernels/cuda/attention/shared_products.h"

namespace syntra::attention {

// The number of parts of the batch in which each kernel computes a call; 0 if this thread's GPU has
// no kernel for it.
template <bool kTransposed>
int64_t MixPartsOnHopper(const Dimensions& z);
int64_t SumPartsOnHopper(const Dimensions& z);

// MixValues or, if kTransposed, MixGradients.
template <bool kTransposed>
void MixOnHopper(const KernelArguments& arguments, const SharedScores<BFloat16>& scores,
                 const Mixed<BFloat16>& mixed, int64_t parts);
// The parts of the sums of dS.
void SumOnHopper(const KernelArguments& arguments, const Dimensions& z,
                 const ScoreSums<BFloat16>& to, const BFloat16* g, const BFloat16* value,
                 const float* delta);

}  // namespace syntra::attention
