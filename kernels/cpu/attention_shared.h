// SPDX-License-Identifier: Apache-2.0
// Attention whose probabilities do not depend on the example: they are computed once per head, and
// the examples that need no mask lie side by side in one product, in groups of a few.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "kernels/cpu/attention_scores.h"

namespace syntra::attention {

class SharedProbabilities {
 public:
  // Whether the probabilities of this call depend on nothing but the head and the mask.
  static bool Serves(std::span<const TensorType> inputs);

  SharedProbabilities(const Sizes& sizes, DType dtype, const std::vector<Block>& blocks,
                      Layout& call);

  // Computes one block of one head; to be called for all of them, in any order.
  void ComputeBlock(const Inputs& inputs, const ScoreProducts& scores, int64_t h, int64_t block,
                    const Workspace& w) const;
  int64_t block_count() const { return static_cast<int64_t>(blocks_.size()); }

  // [rows, keys] of the block: as operand of products, and in f32.
  const void* operand(int64_t h, int64_t block, const Workspace& w) const;
  float* exact(int64_t h, int64_t block, const Workspace& w) const;
  float* log_sum_exp(int64_t h, const Workspace& w) const;  // [T]

  // How many examples a group holds; divides the batch.
  int64_t group_size() const { return group_size_; }
  // The rows of head h of `count` <= group_size() examples side by side, [rows, group_size() * K];
  // the columns of missing examples are 0.
  void GatherGroup(void* activation, int64_t rows, const int64_t* examples, int64_t count,
                   int64_t h, std::byte* out) const;

 private:
  Sizes z_;
  DType dtype_;
  std::vector<Block> blocks_;
  std::vector<int64_t> offsets_;  // of each block among the elements of a head
  int64_t head_elements_ = 0, group_size_ = 1;
  size_t exact_, rounded_ = 0, log_sum_exp_, inverse_sum_;
};

}  // namespace syntra::attention
