// SPDX-License-Identifier: Apache-2.0
// linear_log_probability over chunks of logits (logits.h). A block takes a token.
#include <memory>

#include "kernels/cuda/logits.h"
#include "kernels/cuda/row_sums.h"

namespace syntra {
namespace {

using namespace gpu;

__global__ void LogProbabilityKernel(const float* logits, int64_t vocabulary,
                                     const int32_t* targets, float* result) {
  const int64_t token = BlockIndex();
  const int32_t target = targets[token];
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
  if (!LogitChunks::Serves(call)) return std::nullopt;
  WorkspaceLayout layout;
  const auto plan = std::make_shared<const PassingLogits>(call, layout);
  BoundKernel kernel;
  kernel.workspace_bytes = layout.bytes();
  kernel.run = [plan](const KernelArguments& arguments) {
    plan->Run(arguments, [&](int64_t first, int64_t count, const float* logits) {
      Launch(arguments, {count, kThreads, sizeof(RowStorage)}, LogProbabilityKernel, logits,
             plan->vocabulary(), Input<int32_t>(arguments, 2) + first,
             Output<float>(arguments, 0) + first);
    });
  };
  return kernel;
}

}  // namespace syntra
