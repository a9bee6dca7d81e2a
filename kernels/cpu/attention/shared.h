// SPDX-License-Identifier: Apache-2.0
// Attention whose probabilities do not depend on the example. They are computed once per head. The
// values of a few examples that need no mask are put side by side and multiplied in one product.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "kernels/cpu/attention/scores.h"

namespace syntra::attention {

class SharedProbabilities {
 public:
  // Whether the probabilities of this call depend only on the head and the mask.
  static bool Serves(const Dimensions& z, std::span<const TensorType> inputs);

  SharedProbabilities(const Dimensions& z, DType dtype, const QueryBlocks& blocks,
                      WorkspaceLayout& call);

  // Computes one block of one head. Call it for all blocks of all heads, in any order.
  // The unit's example does not matter.
  void ComputeBlock(const WorkUnit& unit, const ScoreProducts& scores, int64_t block) const;

  // The block's probabilities [rows, keys], in the operand type of products and in f32.
  const void* operand(int64_t h, int64_t block, const Workspace& w) const;
  float* exact(int64_t h, int64_t block, const Workspace& w) const;
  float* log_sum_exp(int64_t h, const Workspace& w) const;  // [T]

  // The number of examples in a group; it divides the batch.
  int64_t group_size() const { return group_size_; }
  // Examples from `from` on, as many as a group takes.
  std::span<const int64_t> GroupFrom(std::span<const int64_t> examples, int64_t from) const;
  // Copies the rows of head h of up to group_size() examples of an activation side by side to
  // `out`, which is [rows, group_size() * K]. The columns of missing examples become 0.
  void GatherGroup(void* activation, const HeadLayout& layout, std::span<const int64_t> examples,
                   int64_t h, std::byte* out) const;

 private:
  Dimensions z_;
  DType dtype_;
  std::vector<QueryBlock> blocks_;
  std::vector<int64_t> offsets_;  // where each block begins among the elements of a head
  int64_t head_elements_ = 0, group_size_ = 1;
  size_t exact_, rounded_ = 0, log_sum_exp_;
};

}  // namespace syntra::attention
