// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/attention/bias_grad.h"

namespace syntra::attention {
namespace {

// The entries of a head's line.
struct BiasLine {
  const int32_t* examples;  // Terms::examples
  int64_t entries, middle;  // middle: the one whose key and query have the same number
  int reach;
  const float* sums;  // [H, entries]
  float* dbias;
  bool accumulate;
};

struct FoldStorage {
  float before[kThreads / kWarp], after[kThreads / kWarp];
};

// A block computes a head. Without examples nothing was summed.
__global__ void FoldBiasKernel(BiasLine line) {
  if (line.examples != nullptr && line.examples[0] == 0) return;
  const float* sums = line.sums + BlockIndex() * line.entries;
  float* dbias = line.dbias + BlockIndex() * line.entries;
  float before = 0.0f, after = 0.0f;
  for (int64_t k = ThreadIndex(); k < line.entries; k += ThreadCount()) {
    const int64_t difference = k - line.middle;
    if (difference <= -line.reach) before += sums[k];
    if (difference >= line.reach) after += sums[k];
  }
  auto& storage = Shared<FoldStorage>();
  before = BlockSum(before, storage.before);
  after = BlockSum(after, storage.after);
  for (int64_t k = ThreadIndex(); k < line.entries; k += ThreadCount()) {
    const int64_t difference = k - line.middle,
                  distance = difference < 0 ? -difference : difference;
    const float at_reach = distance > line.reach ? 0.0f : difference < 0 ? before : after;
    StoreResult(distance < line.reach ? sums[k] : at_reach, dbias + k, line.accumulate);
  }
}

}  // namespace

template <typename T>
void FoldBias(const KernelArguments& arguments, const Backward<T>& call, const float* sums) {
  const Terms<T>& z = call.terms;
  Launch(arguments, {z.heads, kThreads, sizeof(FoldStorage)}, FoldBiasKernel,
         BiasLine{z.examples, z.queries + z.keys - 1, z.queries - 1, z.bias_reach, sums, call.dbias,
                  call.accumulate[kBias]});
}

template void FoldBias(const KernelArguments&, const Backward<float>&, const float*);
template void FoldBias(const KernelArguments&, const Backward<BFloat16>&, const float*);

}  // namespace syntra::attention
