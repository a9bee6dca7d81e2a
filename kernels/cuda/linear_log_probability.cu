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

struct LogProbabilities {
  LogitChunks chunks;
  Converted embedding;
  ChunkGemm product;
  size_t logits = 0, scratch = 0;
};

}  // namespace

std::optional<BoundKernel> cuda_linear_log_probability(const OpCall& call) {
  if (!LogitChunks::Serves(call)) return std::nullopt;
  const LogitChunks chunks(call);
  BoundKernel kernel;
  WorkspaceLayout layout;
  Converted embedding(call.inputs[1], chunks.dtype, cuda_copy, layout);
  ChunkGemm product(chunks,
                    {.n = chunks.vocabulary,
                     .k = chunks.width,
                     .transpose_b = true,
                     .ab = chunks.dtype,
                     .alpha = chunks.scale},
                    &GemmProblem::m);
  const auto plan = std::make_shared<LogProbabilities>(
      LogProbabilities{chunks, std::move(embedding), std::move(product)});
  plan->logits = layout.Place(chunks.rows * chunks.vocabulary * sizeof(float));
  plan->scratch = layout.Place(plan->product.workspace_bytes());
  kernel.workspace_bytes = layout.bytes();
  kernel.run = [plan](const KernelArguments& arguments) {
    const LogitChunks& chunks = plan->chunks;
    const void* embedding = plan->embedding.Run(arguments, 1);
    auto* logits = reinterpret_cast<float*>(arguments.workspace + plan->logits);
    for (int64_t i = 0; i < chunks.count; ++i) {
      plan->product.Run(arguments, i, Input<std::byte>(arguments, 0) + chunks.hidden_bytes(i),
                        embedding, logits, arguments.workspace + plan->scratch);
      Launch(arguments, {chunks.size(i), kThreads, sizeof(RowStorage)}, LogProbabilityKernel,
             logits, chunks.vocabulary, Input<int32_t>(arguments, 2) + chunks.first(i),
             Output<float>(arguments, 0) + chunks.first(i));
    }
  };
  return kernel;
}

}  // namespace syntra
