// SPDX-License-Identifier: Apache-2.0
// take_rows: the first rows of each example of a cache, from another example.
#include <cstring>

#include "core/thread.h"
#include "kernels/operands.h"

namespace syntra {

std::optional<BoundKernel> cpu_take_rows(const OpCall& call) {
  const TensorType cache = call.inputs[0];
  BoundKernel kernel;
  kernel.run = [cache](const KernelArguments& arguments) {
    const int64_t examples = cache.shape[0];
    const auto* parents = Input<int32_t>(arguments, 1);
    const int64_t length = Input<int32_t>(arguments, 2)[0];
    SYNTRA_CHECK(length >= 0 && length <= cache.shape[1], "{} rows of a cache of {}", length,
                 cache.shape[1]);
    for (int64_t b = 0; b < examples; ++b) {
      SYNTRA_CHECK(parents[b] < examples, "example {} of a cache of {}", parents[b], examples);
    }
    const size_t row_bytes = cache.shape[2] * SizeOf(cache.dtype);
    const size_t example_bytes = cache.shape[1] * row_bytes;
    const auto* from = Input<std::byte>(arguments, 0);
    auto* to = Output<std::byte>(arguments, 0);
    ParallelFor(examples, 1, [=](int64_t begin, int64_t end) {
      for (int64_t b = begin; b < end; ++b) {
        if (parents[b] < 0) continue;
        std::memcpy(to + b * example_bytes, from + parents[b] * example_bytes, length * row_bytes);
      }
    });
  };
  return kernel;
}

}  // namespace syntra
