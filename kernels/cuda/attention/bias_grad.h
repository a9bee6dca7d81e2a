// SPDX-License-Identifier: Apache-2.0
// dbias from the sums of dS for each difference of key and query. With a bias_reach those beyond it
// are added to the one at it (kernels/README.md, "attention").
#pragma once

#include "kernels/cuda/attention/terms.h"
#include "kernels/workspace.h"

namespace syntra::attention {

// Places the sums of a call that has a bias_reach, [H, T + S - 1]. Other calls need none.
inline size_t PlaceBiasSums(const OpCall& call, const Dimensions& z, WorkspaceLayout& layout) {
  if (!call.outputs[kBias].present() || z.bias_reach == 0) return 0;
  return layout.Place(z.heads * (z.queries + z.keys - 1) * sizeof(float));
}

// Computes dbias from these sums.
template <typename T>
void FoldBias(const KernelArguments& arguments, const Backward<T>& call, const float* sums);

// Computes dbias with sum(to, accumulate), which writes the sums, or adds them to what is there.
template <typename T, typename Sum>
void SumBias(const KernelArguments& arguments, const Backward<T>& call, float* sums,
             const Sum& sum) {
  if (call.terms.bias_reach == 0) return sum(call.dbias, call.accumulate[kBias]);
  sum(sums, false);
  FoldBias(arguments, call, sums);
}

}  // namespace syntra::attention
