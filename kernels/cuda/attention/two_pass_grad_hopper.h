// SPDX-License-Identifier: Apache-2.0
// attention_grad's passes over queries and over keys on Hopper GPUs, in bf16 for heads of 64
// columns. Scores are products of queries and keys, of u and positions, or both, perhaps with a
// bias and a table.
#pragma once

#include "kernels/cuda/attention/grad.h"

namespace syntra::attention {

// In how many parts of the batch (Recomputation::parts) the kernels compute a call; 0 if they do
// not. `inputs` are those of attention_grad.
int64_t TwoPassPartsOnHopper(const Dimensions& z, std::span<const TensorType> inputs);

// Computes dQ, dU, dK, dV, and parts of dp and dbias.
void RunTwoPassesOnHopper(const KernelArguments& arguments, const Recomputation<BFloat16>& work);

}  // namespace syntra::attention
