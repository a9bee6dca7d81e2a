// SPDX-License-Identifier: Apache-2.0
// all_reduce of one rank: a copy. Of several ranks there is no kernel yet, as a section of a
// program is one CUDA graph, which cannot hold NCCL's calls (src/program/beyond_data_parallel.md).
#include "kernels/cuda/copy.h"

namespace syntra {

std::optional<BoundKernel> cuda_all_reduce(const OpCall& call) {
  if (call.attributes.Int("ranks") > 1) return std::nullopt;
  return cuda_copy(call);
}

}  // namespace syntra
