// SPDX-License-Identifier: Apache-2.0
// uniform: random numbers in (0, 1) by the keys of the rows.
#include "core/thread.h"
#include "kernels/math/random_mask.h"
#include "kernels/operands.h"

namespace syntra {

std::optional<BoundKernel> cpu_uniform(const OpCall& call) {
  const int64_t size = call.outputs[0].shape.size();
  BoundKernel kernel;
  kernel.run = [size, width = size / call.outputs[0].shape[0],
                site = static_cast<uint64_t>(call.attributes.Int("site"))](
                   const KernelArguments& arguments) {
    constexpr int64_t kGrain = 1024;
    const auto* keys = Input<int32_t>(arguments, 0);
    auto* y = Output<float>(arguments, 0);
    ParallelFor(size, kGrain, [=](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        y[i] = OpenUniform(RowKey(keys + 2 * (i / width)), static_cast<uint64_t>(i % width), site);
      }
    });
  };
  return kernel;
}

}  // namespace syntra
