// SPDX-License-Identifier: Apache-2.0
// linear_argmax: argmax_v of scale * hidden . embedding_v, the lowest index among equals. One block
// per token.
#include "kernels/cuda/launch.h"
#include "kernels/cuda/logits.h"

namespace syntra {
namespace {

using namespace gpu;

// Keeps the better of two candidates: the larger logit or, if they are equal, the lower index. So
// one that stands for a NaN, {INFINITY, -1}, outranks all.
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
  Candidate best{-INFINITY, -1};
  for (int64_t v = ThreadIndex(); v < vocabulary; v += kThreads) {
    const float logit = row[v];
    if (!(logit < INFINITY)) {
      best = {INFINITY, -1};
    } else if (logit > best.logit) {
      best = {logit, static_cast<int32_t>(v)};
    }
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

}  // namespace

std::optional<BoundKernel> cuda_linear_argmax(const OpCall& call) {
  return BindToLogits(
      call, [](const KernelArguments& arguments, const LogitChunk& chunk, int64_t vocabulary) {
        Launch(arguments, {chunk.tokens, kThreads, sizeof(ArgmaxStorage)}, ArgmaxKernel,
               chunk.logits, vocabulary, Output<int32_t>(arguments, 0) + chunk.first);
      });
}

}  // namespace syntra
