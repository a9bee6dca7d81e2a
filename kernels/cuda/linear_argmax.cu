// SPDX-License-Identifier: Apache-2.0
// linear_argmax: argmax_v of scale * hidden . embedding_v, the lowest index among equals. One block
// per token.
#include <memory>

#include "kernels/cuda/launch.h"
#include "kernels/cuda/logits.h"

namespace syntra {
namespace {

using namespace gpu;

// Keeps the better of two candidates: the larger logit or, if they are equal, the lower index.
struct Candidate {
  float logit;
  int32_t index;

  __device__ void Take(const Candidate& other) {
    if (other.logit > logit || (other.logit == logit && other.index < index)) *this = other;
  }
};

struct ArgmaxStorage {
  Candidate of_warp[kThreads / kWarp];
};

__global__ void ArgmaxKernel(const float* logits, int64_t vocabulary, int32_t* result) {
  auto& shared = Shared<ArgmaxStorage>();
  const float* row = logits + BlockIndex() * vocabulary;
  Candidate best{-INFINITY, 0};
  for (int64_t v = ThreadIndex(); v < vocabulary; v += kThreads) {
    if (row[v] > best.logit) best = {row[v], static_cast<int32_t>(v)};
  }
  for (int mask = kWarp / 2; mask > 0; mask /= 2) {
    best.Take({ShuffleXor(best.logit, mask), ShuffleXor(best.index, mask)});
  }
  if (LaneIndex() == 0) shared.of_warp[WarpIndex()] = best;
  SyncThreads();
  if (ThreadIndex() != 0) return;
  for (int warp = 1; warp < WarpCount(); ++warp) best.Take(shared.of_warp[warp]);
  result[BlockIndex()] = best.index;
}

struct Argmax {
  LogitChunks chunks;
  Converted embedding;
  ChunkGemm product;
  size_t logits = 0, scratch = 0;
};

}  // namespace

std::optional<BoundKernel> cuda_linear_argmax(const OpCall& call) {
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
  const auto plan =
      std::make_shared<Argmax>(Argmax{chunks, std::move(embedding), std::move(product)});
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
      Launch(arguments, {chunks.size(i), kThreads, sizeof(ArgmaxStorage)}, ArgmaxKernel, logits,
             chunks.vocabulary, Output<int32_t>(arguments, 0) + chunks.first(i));
    }
  };
  return kernel;
}

}  // namespace syntra
