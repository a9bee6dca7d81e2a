// SPDX-License-Identifier: Apache-2.0
// attention_grad's passes on Hopper GPUs: over queries and keys, in one, and over scores. They are
// for heads of 64 columns in bf16 whose scores are products of queries and keys or of u and
// positions, perhaps with a bias and a table; the first for up to 512 queries.
#pragma once

#include "kernels/cuda/attention_grad.h"

namespace syntra::attention {

// In how many parts of the batch (Recomputation::parts) the kernel computes a call; 0 if it does
// not. `inputs` are those of attention_grad.
int64_t GradientPartsOnHopper(const Dimensions& z, std::span<const TensorType> inputs);

// Computes dQ or dU, dK, dV, and parts of dp and dbias.
void RunProductOnHopper(const KernelArguments& arguments, const Recomputation<BFloat16>& work);

// In how many parts of the batch (Recomputation::table_parts) a kernel computes the sums of dS. The
// table has the scores' rows and columns.
int64_t TablePartsOnHopper(const Dimensions& z);

// Computes the parts of dtable.
void SumTableOnHopper(const KernelArguments& arguments, const Recomputation<BFloat16>& work);

}  // namespace syntra::attention
