// SPDX-License-Identifier: Apache-2.0
// linear_log_probability over tiles of logits (see vocabulary_tiles.h): each block of the
// vocabulary gives the largest logit of a token and the sum of exponentials beside it; from these
// follows log_z.
#include <cmath>
#include <limits>
#include <memory>

#include "core/thread.h"
#include "kernels/cpu/exponentials.h"
#include "kernels/cpu/vocabulary_tiles.h"
#include "kernels/operands.h"
#include "kernels/workspace.h"

namespace syntra {
namespace {

class LogProbabilities {
 public:
  LogProbabilities(const Projection& projection, int64_t first, PackedWeights* weights)
      : tiles_(projection), products_(tiles_, weights), first_(first) {
    WorkspaceLayout thread_layout;
    logits_ = thread_layout.Place(tiles_.chunk_rows() * tiles_.largest_block() * sizeof(float));
    scratch_ = thread_layout.Place(products_.workspace_bytes());
    thread_bytes_ = thread_layout.bytes();
    sums_ = layout_.Place(tiles_.block_count() * projection.tokens * sizeof(BlockExponentials));
    target_logits_ = layout_.Place(projection.tokens * sizeof(float));
    threads_ = layout_.Place(ThreadCount() * thread_bytes_);
  }

  size_t workspace_bytes() const { return layout_.bytes(); }
  void Run(const KernelArguments& arguments) const;

 private:
  void RunBlock(const KernelArguments& arguments, int64_t block) const;
  BlockExponentials* SumsOf(const KernelArguments& arguments, int64_t block) const {
    return reinterpret_cast<BlockExponentials*>(arguments.workspace + sums_) +
           block * tiles_.projection().tokens;
  }
  float* TargetLogits(const KernelArguments& arguments) const {
    return reinterpret_cast<float*>(arguments.workspace + target_logits_);
  }
  float LogProbability(const KernelArguments& arguments, int64_t token) const;

  VocabularyTiles tiles_;
  LogitProducts products_;
  int64_t first_;  // target of row 0 of the embedding
  WorkspaceLayout layout_;
  size_t sums_, target_logits_, threads_, thread_bytes_, logits_, scratch_;
};

void LogProbabilities::RunBlock(const KernelArguments& arguments, int64_t block) const {
  const int32_t* targets = Input<int32_t>(arguments, 2);
  std::byte* thread = arguments.workspace + threads_ + ThreadIndex() * thread_bytes_;
  for (int64_t chunk = 0; chunk < tiles_.chunk_count(); ++chunk) {
    const LogitTile tile = tiles_.tile(chunk, block, reinterpret_cast<float*>(thread + logits_));
    products_.Run(Input<std::byte>(arguments, 0), Input<float>(arguments, 1), tile,
                  thread + scratch_);
    for (int64_t row = tile.repeated; row < tile.rows; ++row) {
      const int64_t token = tile.first_token + row;
      if (targets[token] < first_) continue;
      const float* logits = tile.logits + row * tile.columns;
      SumsOf(arguments, block)[token] = SumExponentials(logits, tile.columns);
      const int64_t target = targets[token] - first_ - tile.first_column;
      if (target >= 0 && target < tile.columns) TargetLogits(arguments)[token] = logits[target];
    }
  }
}

float LogProbabilities::LogProbability(const KernelArguments& arguments, int64_t token) const {
  double largest = -std::numeric_limits<double>::infinity(), sum = 0.0;
  for (int64_t block = 0; block < tiles_.block_count(); ++block) {
    largest = std::max<double>(largest, SumsOf(arguments, block)[token].largest);
  }
  for (int64_t block = 0; block < tiles_.block_count(); ++block) {
    const BlockExponentials& part = SumsOf(arguments, block)[token];
    sum += part.sum * std::exp(part.largest - largest);
  }
  return static_cast<float>(TargetLogits(arguments)[token] - largest - std::log(sum));
}

void LogProbabilities::Run(const KernelArguments& arguments) const {
  const Projection& projection = tiles_.projection();
  const int32_t* targets = Input<int32_t>(arguments, 2);
  for (int64_t token = 0; token < projection.tokens; ++token) {
    SYNTRA_CHECK(targets[token] - first_ < projection.vocabulary,
                 "target {} outside a vocabulary of {}", targets[token], projection.vocabulary);
  }
  ParallelTasks(tiles_.block_count(), [&](int64_t block) { RunBlock(arguments, block); });
  float* result = Output<float>(arguments, 0);
  for (int64_t token = 0; token < projection.tokens; ++token) {
    result[token] = targets[token] < first_ ? 0.0f : LogProbability(arguments, token);
  }
}

}  // namespace

std::optional<BoundKernel> cpu_linear_log_probability(const OpCall& call) {
  const auto plan = std::make_shared<const LogProbabilities>(
      ProjectionOf(call), call.attributes.Int("first"), call.packed_weights);
  BoundKernel kernel;
  kernel.workspace_bytes = plan->workspace_bytes();
  kernel.run = [plan](const KernelArguments& arguments) { plan->Run(arguments); };
  return kernel;
}

}  // namespace syntra
