// SPDX-License-Identifier: Apache-2.0
// Adds the gradients of a rank's micro-batches, as they come, over the tree of dist/tree_sum.h.
// Together with the communicator's sum over ranks this makes one tree over all micro-batches of a
// step. The tree does not depend on the number of ranks, as long as each of several ranks has a
// power of two of micro-batches.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/backend.h"

namespace syntra {

class GradientTree {
 public:
  // Makes the tree for steps of `leaves` micro-batches, on the backend, which must outlive it. The
  // tree has TreeLevels(leaves) buffers of `elements` floats, beside the one that takes each
  // micro-batch's gradients. Throws Error(kResources) if they cannot be had.
  GradientTree(int64_t leaves, int64_t elements, Backend& backend);

  // `gradients`, in the backend's memory, are those of the next micro-batch alone. After the last
  // micro-batch of a step they hold the sum of all, before that nothing of use.
  void Add(TensorView gradients);

 private:
  void Run(const BoundKernel& kernel, void* from, void* to);

  Device& device_;
  uint64_t leaves_;
  uint64_t added_ = 0;  // since the step began; bit l: levels_[l] holds the sum of 2^l leaves
  std::vector<Buffer> levels_;
  BoundKernel copy_, add_;
};

}  // namespace syntra
