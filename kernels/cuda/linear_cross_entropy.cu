// SPDX-License-Identifier: Apache-2.0
// linear_cross_entropy and its gradient on chunks of logits (logits.h), one block per token. One
// pass over the token's logits finds the largest and the sum of exponentials, which give log_z and
// the loss. In the gradient a second pass turns the logits into dlogits. Then dhidden = dlogits E
// and dE = dlogits^T hidden. The losses of tokens are added in order, in double.
#include <memory>

#include "kernels/cuda/logit_rows.h"
#include "kernels/cuda/logits.h"
#include "kernels/math/loss_statistics.h"
#include "kernels/target_row.h"

namespace syntra {
namespace {

using namespace gpu;

// The numbers that a token adds to the sums; all zero if the token is ignored.
struct TokenLoss {
  double total, negative_log_likelihood, z_term, counts;
};

struct Loss {
  float z_loss, label_smoothing;
  int32_t first;  // target of row 0 of the embedding
  int64_t vocabulary;
};

// dlogit = scale * dloss * inverse_denominator * ((1 + 2 z_loss log_z) p - q), q the smoothed
// target distribution.
struct DlogitScale {
  float projection;
  const float *inverse_denominator, *dloss;

  __device__ float Value() const { return projection * *inverse_denominator * *dloss; }
};

// A chunk's logits and its tokens' targets and results.
struct Chunk {
  const float* logits;
  const int32_t* targets;
  TokenLoss* losses;
  Loss loss;
};

__device__ TokenLoss LossOf(const Loss& loss, const RowSums& row, float target_logit) {
  const double log_z = row.log_z, smoothing = loss.label_smoothing;
  const double expected = (1.0 - smoothing) * target_logit +
                          smoothing / static_cast<double>(loss.vocabulary) * row.logits;
  const double z_term = loss.z_loss * log_z * log_z;
  return {log_z - expected + z_term, log_z - target_logit, z_term, 1.0};
}

__global__ void LossKernel(Chunk chunk) {
  const int64_t token = BlockIndex();
  const int32_t target = TargetRow(chunk.targets[token], chunk.loss.first);
  if (target < 0) {
    if (ThreadIndex() == 0) chunk.losses[token] = {};
    return;
  }
  const float* logits = chunk.logits + token * chunk.loss.vocabulary;
  const RowSums row = SumRow(logits, chunk.loss.vocabulary);
  if (ThreadIndex() == 0) chunk.losses[token] = LossOf(chunk.loss, row, logits[target]);
}

// Writes dlogits of type T. In f32 they may overwrite the logits.
template <typename T>
__global__ void DlogitKernel(Chunk chunk, DlogitScale scale, T* dlogits) {
  const int64_t token = BlockIndex(), vocabulary = chunk.loss.vocabulary;
  const int32_t target = TargetRow(chunk.targets[token], chunk.loss.first);
  const float* logits = chunk.logits + token * vocabulary;
  T* to = dlogits + token * vocabulary;
  RowSums row = {};
  if (target >= 0) {
    row = SumRow(logits, vocabulary);
    if (ThreadIndex() == 0) chunk.losses[token] = LossOf(chunk.loss, row, logits[target]);
    SyncThreads();
  } else if (ThreadIndex() == 0) {
    chunk.losses[token] = {};
  }
  const float factor = target >= 0 ? scale.Value() : 0.0f;
  const float share = factor * (1.0f + 2.0f * chunk.loss.z_loss * row.log_z);
  const float smoothed = factor * chunk.loss.label_smoothing / static_cast<float>(vocabulary);
  const float target_share = factor * (1.0f - chunk.loss.label_smoothing);
  PacksOf(vocabulary, [&]<int kCount>(int64_t j) {
    Pack<T, kCount> dlogit = {};
    if (target >= 0) {
      const auto logit = Pack<float, kCount>::Load(logits + j);
      const int64_t wanted = target - j;
#pragma unroll
      for (int k = 0; k < kCount; ++k) {
        const float p = share * expf(logit.element[k] - row.log_z) - smoothed;
        dlogit.element[k] = FromFloat<T>(k == wanted ? p - target_share : p);
      }
    }
    dlogit.Store(to + j);
  });
}

struct LossOutputs {
  float *loss, *statistics;  // null: not needed
  bool accumulate_loss, accumulate_statistics;
};

struct LossStorage {
  double of_warp[4][kThreads / kWarp];
};

// The sums over all tokens. Runs as one block.
__global__ void FinishLossKernel(const TokenLoss* losses, int64_t tokens,
                                 const float* inverse_denominator, LossOutputs outputs) {
  auto& shared = Shared<LossStorage>();
  TokenLoss sum = {};
  for (int64_t token = ThreadIndex(); token < tokens; token += ThreadCount()) {
    sum.total += losses[token].total;
    sum.negative_log_likelihood += losses[token].negative_log_likelihood;
    sum.z_term += losses[token].z_term;
    sum.counts += losses[token].counts;
  }
  sum.total = BlockSum(sum.total, shared.of_warp[0]);
  sum.negative_log_likelihood = BlockSum(sum.negative_log_likelihood, shared.of_warp[1]);
  sum.z_term = BlockSum(sum.z_term, shared.of_warp[2]);
  sum.counts = BlockSum(sum.counts, shared.of_warp[3]);
  if (ThreadIndex() != 0) return;
  if (outputs.loss != nullptr) {
    StoreResult(static_cast<float>(*inverse_denominator * sum.total), outputs.loss,
                outputs.accumulate_loss);
  }
  if (outputs.statistics != nullptr) {
    const auto store = [&](loss_statistics::Slot slot, double value) {
      StoreResult(static_cast<float>(value), outputs.statistics + slot,
                  outputs.accumulate_statistics);
    };
    store(loss_statistics::kNegativeLogP, sum.negative_log_likelihood);
    store(loss_statistics::kZLoss, sum.z_term);
    store(loss_statistics::kTokens, sum.counts);
  }
}

// The losses of all tokens and their sums, for both ops.
class Losses {
 public:
  Losses(const OpCall& call, const LogitChunks& chunks, WorkspaceLayout& layout)
      : loss_{static_cast<float>(call.attributes.Number("z_loss")),
              static_cast<float>(call.attributes.Number("label_smoothing")),
              static_cast<int32_t>(call.attributes.Int("first")), chunks.vocabulary},
        tokens_(chunks.tokens),
        losses_(layout.Place(chunks.tokens * sizeof(TokenLoss))) {}

  Chunk Of(const KernelArguments& arguments, const LogitChunk& chunk) const {
    return {chunk.logits, Input<int32_t>(arguments, 2) + chunk.first,
            Values(arguments) + chunk.first, loss_};
  }
  void Finish(const KernelArguments& arguments, const LossOutputs& outputs) const {
    Launch(arguments, {1, kThreads, sizeof(LossStorage)}, FinishLossKernel, Values(arguments),
           tokens_, Input<float>(arguments, 3), outputs);
  }

 private:
  TokenLoss* Values(const KernelArguments& arguments) const {
    return reinterpret_cast<TokenLoss*>(arguments.workspace + losses_);
  }

  Loss loss_;
  int64_t tokens_;
  size_t losses_;
};

class CrossEntropy {
 public:
  explicit CrossEntropy(const OpCall& call)
      : logits_(call, layout_),
        losses_(call, logits_.chunks(), layout_),
        scratch_(layout_.Place(logits_.scratch_bytes())) {}

  size_t workspace_bytes() const { return layout_.bytes(); }
  void Run(const KernelArguments& arguments) const {
    logits_.Run(arguments, arguments.workspace + scratch_, [&](const LogitChunk& chunk) {
      Launch(arguments, {chunk.tokens, kThreads, sizeof(RowStorage)}, LossKernel,
             losses_.Of(arguments, chunk));
    });
    losses_.Finish(arguments,
                   {Output<float>(arguments, 0), Output<float>(arguments, 1), false, false});
  }

 private:
  WorkspaceLayout layout_;
  PassingLogits logits_;
  Losses losses_;
  size_t scratch_;
};

class CrossEntropyGrad {
 public:
  explicit CrossEntropyGrad(const OpCall& call)
      : logits_(call, layout_),
        losses_(call, logits_.chunks(), layout_),
        accumulate_(call.accumulate) {
    const LogitChunks& chunks = logits_.chunks();
    size_t scratch = logits_.scratch_bytes();
    if (chunks.dtype == DType::kBF16) {
      dlogits_ = layout_.Place(chunks.rows * chunks.vocabulary * sizeof(BFloat16));
    }
    if (call.outputs[0].present()) {
      hidden_ = ChunkGemm(chunks,
                          {.n = chunks.width,
                           .k = chunks.vocabulary,
                           .ab = chunks.dtype,
                           .c = chunks.dtype,
                           .accumulate = accumulate_[0]},
                          &GemmProblem::m);
      scratch = std::max(scratch, hidden_.workspace_bytes());
    }
    if (call.outputs[1].present()) {
      GemmProblem problem{.m = chunks.vocabulary,
                          .n = chunks.width,
                          .transpose_a = true,
                          .ab = chunks.dtype,
                          .accumulate = accumulate_[1]};
      embedding_first_ = ChunkGemm(chunks, problem, &GemmProblem::k);
      problem.accumulate = true;
      embedding_next_ = ChunkGemm(chunks, problem, &GemmProblem::k);
      scratch = std::max(
          {scratch, embedding_first_.workspace_bytes(), embedding_next_.workspace_bytes()});
    }
    scratch_ = layout_.Place(scratch);
  }

  size_t workspace_bytes() const { return layout_.bytes(); }

  void Run(const KernelArguments& arguments) const {
    logits_.Run(arguments, arguments.workspace + scratch_,
                [&](const LogitChunk& chunk) { RunChunk(arguments, chunk); });
    losses_.Finish(arguments, {Output<float>(arguments, 2), Output<float>(arguments, 3),
                               accumulate_[2], accumulate_[3]});
  }

 private:
  void RunChunk(const KernelArguments& arguments, const LogitChunk& chunk) const {
    const LogitChunks& chunks = logits_.chunks();
    std::byte* scratch = arguments.workspace + scratch_;
    const DlogitScale scale{chunks.scale, Input<float>(arguments, 3), Input<float>(arguments, 4)};
    const Grid grid{chunk.tokens, kThreads, sizeof(RowStorage)};
    const void* dlogits = chunk.logits;
    if (chunks.dtype == DType::kBF16) {
      auto* rounded = reinterpret_cast<BFloat16*>(arguments.workspace + dlogits_);
      Launch(arguments, grid, DlogitKernel<BFloat16>, losses_.Of(arguments, chunk), scale, rounded);
      dlogits = rounded;
    } else {
      Launch(arguments, grid, DlogitKernel<float>, losses_.Of(arguments, chunk), scale,
             chunk.logits);
    }
    if (auto* dhidden = Output<std::byte>(arguments, 0)) {
      hidden_.Run(arguments, chunk.index, dlogits, chunk.embedding,
                  dhidden + chunks.hidden_bytes(chunk.index), scratch);
    }
    if (auto* dembedding = Output<float>(arguments, 1)) {
      (chunk.index == 0 ? embedding_first_ : embedding_next_)
          .Run(arguments, chunk.index, dlogits,
               Input<std::byte>(arguments, 0) + chunks.hidden_bytes(chunk.index), dembedding,
               scratch);
    }
  }

  WorkspaceLayout layout_;
  PassingLogits logits_;
  Losses losses_;
  std::vector<bool> accumulate_;
  ChunkGemm hidden_, embedding_first_, embedding_next_;
  size_t dlogits_ = 0, scratch_ = 0;
};

template <typename Plan>
BoundKernel BindPlan(const OpCall& call) {
  const auto plan = std::make_shared<const Plan>(call);
  BoundKernel kernel;
  kernel.workspace_bytes = plan->workspace_bytes();
  kernel.run = [plan](const KernelArguments& arguments) { plan->Run(arguments); };
  return kernel;
}

}  // namespace

std::optional<BoundKernel> cuda_linear_cross_entropy(const OpCall& call) {
  return BindPlan<CrossEntropy>(call);
}

std::optional<BoundKernel> cuda_linear_cross_entropy_grad(const OpCall& call) {
  BoundKernel kernel = BindPlan<CrossEntropyGrad>(call);
  kernel.accumulates = true;
  return kernel;
}

}  // namespace syntra
