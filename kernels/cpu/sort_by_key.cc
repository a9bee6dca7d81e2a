// SPDX-License-Identifier: Apache-2.0
// sort_by_key: places are sorted by key and place, which is stable and needs no memory.
#include <algorithm>
#include <numeric>

#include "core/thread.h"
#include "kernels/operands.h"

namespace syntra {

std::optional<BoundKernel> cpu_sort_by_key(const OpCall& call) {
  const TensorType keys = call.inputs[0];
  BoundKernel kernel;
  const bool ordered = call.outputs[0].present();
  kernel.workspace_bytes = ordered ? 0 : keys.bytes();
  kernel.run = [keys, ordered](const KernelArguments& arguments) {
    const int64_t width = keys.shape[-1];
    const auto* from = Input<int32_t>(arguments, 0);
    auto* orders =
        ordered ? Output<int32_t>(arguments, 0) : reinterpret_cast<int32_t*>(arguments.workspace);
    auto* ranks = Output<int32_t>(arguments, 1);
    ParallelFor(keys.shape.rows(), 1, [=](int64_t begin, int64_t end) {
      for (int64_t first = begin * width; first < end * width; first += width) {
        const int32_t* key = from + first;
        int32_t* order = orders + first;
        std::iota(order, order + width, 0);
        std::sort(order, order + width,
                  [=](int32_t a, int32_t b) { return key[a] != key[b] ? key[a] < key[b] : a < b; });
        for (int64_t r = 0; ranks != nullptr && r < width; ++r) {
          ranks[first + order[r]] = static_cast<int32_t>(r);
        }
      }
    });
  };
  return kernel;
}

}  // namespace syntra
