// SPDX-License-Identifier: Apache-2.0
// linear_log_probability over chunks of logits (logits.h). A block takes a token.
#include "kernels/cuda/logit_rows.h"
#include "kernels/cuda/logits.h"

namespace syntra {
namespace {

using namespace gpu;

__global__ void LogProbabilityKernel(const float* logits, int64_t vocabulary,
                                     const int32_t* targets, int32_t first, float* result) {
  const int64_t token = BlockIndex();
  const int32_t target = targets[token] - first;
  if (target < 0) {
    if (ThreadIndex() == 0) result[token] = 0.0f;
    return;
  }
  const float* row = logits + token * vocabulary;
  const RowSums sums = SumRow(row, vocabulary);
  if (ThreadIndex() == 0) result[token] = row[target] - sums.log_z;
}

}  // namespace

std::optional<BoundKernel> cuda_linear_log_probability(const OpCall& call) {
  return BindToLogits(
      call, [first = static_cast<int32_t>(call.attributes.Int("first"))](
                const KernelArguments& arguments, const LogitChunk& chunk, int64_t vocabulary) {
        Launch(arguments, {chunk.tokens, kThreads, sizeof(RowStorage)}, LogProbabilityKernel,
               chunk.logits, vocabulary, Input<int32_t>(arguments, 2) + chunk.first, first,
               Output<float>(arguments, 0) + chunk.first);
      });
}

}  // namespace syntra
