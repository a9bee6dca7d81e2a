// SPDX-License-Identifier: Apache-2.0
// What a configuration would take: parameters, arithmetic, memory. Nothing of it is allocated.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "configs/schema/config.pb.h"
#include "kernels/backend.h"

namespace syntra {

struct RunSizes {
  int64_t parameters = 0;  // all, as papers count them
  int64_t trainable_parameters = 0;
  double flops_per_step = 0;  // forward and backward, whole batch; multiply-adds count 2
  // Of one micro-batch; without an encoder its rows are target_length long.
  int64_t rows = 0, input_length = 0, target_length = 0;
  int gradient_buffers = 1;  // with train.reduction EXACT also those of the tree
  double parameter_bytes = 0, gradient_bytes = 0, optimizer_bytes = 0;
  double activation_bytes = 0;  // planned arena of one micro-batch, workspace included
  // In the same memory: of an evaluation's largest piece, of an update of the parameters.
  double evaluation_bytes = 0, update_bytes = 0;
  double checkpoint_bytes = 0;
  bool asynchronous_saves = false;  // from a copy of the state
  bool is_sharded = false;          // the optimizer's state, over the ranks

  double total_bytes() const {
    return parameter_bytes + gradient_bytes + optimizer_bytes +
           std::max({activation_bytes, evaluation_bytes, update_bytes});
  }
};

// A value that is alive at the step of a training program that needs most memory.
struct LiveBlock {
  size_t bytes;
  std::string type;     // "f32[4, 512, 768]", or "workspace"
  std::string made_by;  // the op, and its parameters
};
std::vector<LiveBlock> LargestAtPeak(const Config& config, size_t count);

// What a rank updates and keeps the optimizer's state of.
struct ShareSizes {
  std::vector<std::string> parameters;  // their names, with "[begin, end)" where it is not all
  int64_t updated = 0;                  // of their elements
  double optimizer_bytes = 0;
};
// Of each rank with train.sharding, of all ranks alike without it. As CPUs share the parameters: on
// GPUs the parts are as large, but lie in each piece.
std::vector<ShareSizes> ShareSizesOf(const Config& config, int ranks);

// For one of `ranks` ranks that compute on the backend; of several that share the optimizer's
// state, for the one with most of it. Throws Error(kConfig) if they cannot share the batch.
RunSizes RunSizesOf(const Config& config, int ranks, Backend& backend = CpuBackend());

}  // namespace syntra
