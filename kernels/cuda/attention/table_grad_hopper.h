// SPDX-License-Identifier: Apache-2.0
// The sums of dS for dtable on Hopper GPUs (Recomputation::table_sums): for the scores of
// one_pass_grad_hopper.h, with any number of queries, and a table that has the scores' rows and
// columns.
#pragma once

#include "kernels/cuda/attention/grad.h"

namespace syntra::attention {

// In how many parts of the batch (Recomputation::table_parts) the kernel computes the sums.
int64_t TablePartsOnHopper(const Dimensions& z);

// Computes the parts.
void SumTableOnHopper(const KernelArguments& arguments, const Recomputation<BFloat16>& work);

}  // namespace syntra::attention
