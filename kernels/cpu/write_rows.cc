// SPDX-License-Identifier: Apache-2.0
// write_rows: puts new rows of each example into a cache, from row `start` on.
#include <cstring>

#include "kernels/operands.h"

namespace syntra {

std::optional<BoundKernel> cpu_write_rows(const OpCall& call) {
  const TensorType x = call.inputs[0], cache = call.outputs[0];
  BoundKernel kernel;
  kernel.run = [x, cache](const KernelArguments& arguments) {
    const int64_t start = Input<int32_t>(arguments, 1)[0];
    SYNTRA_CHECK(start >= 0 && start + x.shape[1] <= cache.shape[1],
                 "rows {} to {} of a cache of {} rows", start, start + x.shape[1], cache.shape[1]);
    const size_t row_bytes = x.shape[2] * SizeOf(x.dtype), bytes = x.shape[1] * row_bytes;
    const auto* from = Input<std::byte>(arguments, 0);
    auto* to = Output<std::byte>(arguments, 0) + start * row_bytes;
    for (int64_t b = 0; b < x.shape[0]; ++b) {
      std::memcpy(to + b * cache.shape[1] * row_bytes, from + b * bytes, bytes);
    }
  };
  return kernel;
}

}  // namespace syntra
