// SPDX-License-Identifier: Apache-2.0
// attention_grad in one pass over queries and keys, on Hopper GPUs, in bf16 for heads of 64 columns
// and up to 512 queries. Scores are products of queries and keys or of u and positions, perhaps
// with a bias and a table.
#pragma once

#include "kernels/cuda/attention/grad.h"

namespace syntra::attention {

// In how many parts of the batch (Recomputation::parts) the kernel computes a call; 0 if it does
// not. `inputs` are those of attention_grad.
int64_t OnePassPartsOnHopper(const Dimensions& z, std::span<const TensorType> inputs);

// Computes dQ or dU, dK, dV, and parts of dp and dbias.
void RunOnePassOnHopper(const KernelArguments& arguments, const Recomputation<BFloat16>& work);

}  // namespace syntra::attention
