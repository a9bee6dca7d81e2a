// SPDX-License-Identifier: Apache-2.0
// attention_grad's passes on Hopper GPUs for scores that are products of factors, perhaps with a
// bias (factors.h).
#pragma once

#include "kernels/cuda/attention/grad.h"

namespace syntra::attention {

// In how many parts of the batch (Recomputation::parts) the kernels compute a call; 0 if they do
// not. `inputs` are those of attention_grad.
int64_t FactorPartsOnHopper(const Dimensions& z, std::span<const TensorType> inputs);

// Computes da, db, dV, and parts of dbias.
void RunFactorsOnHopper(const KernelArguments& arguments, const Recomputation<BFloat16>& work);

}  // namespace syntra::attention
