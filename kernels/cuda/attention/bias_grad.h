// SPDX-License-Identifier: Apache-2.0
// dbias [H, T + S - 1], which has an entry for each difference of key and query, from sums of dS.
// With a bias_reach R all differences of R or more have one bias, and so have those of -R or less
// (kernels/README.md, "attention"). So their sums are added to the entry at R or -R:
//
//   difference  -T+1 .. -R-1   -R             -R+1 .. R-1   R            R+1 .. S-1
//   dbias            0         sum up to -R      sums       sum from R       0
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
