// SPDX-License-Identifier: Apache-2.0
// nonzero: 1 where x is not 0, else 0.
#include "core/thread.h"
#include "kernels/bfloat16.h"
#include "kernels/cpu/grain.h"
#include "kernels/operands.h"

namespace syntra {

std::optional<BoundKernel> cpu_nonzero(const OpCall& call) {
  BoundKernel kernel;
  kernel.run = [y = call.outputs[0]](const KernelArguments& arguments) {
    const auto* x = Input<int32_t>(arguments, 0);
    const auto fill = [&](auto* to, auto one) {
      ParallelFor(y.shape.size(), kGrain, [=](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) to[i] = x[i] != 0 ? one : decltype(one){};
      });
    };
    if (y.dtype == DType::kBF16) return fill(Output<BFloat16>(arguments, 0), ToBFloat16(1.0f));
    fill(Output<float>(arguments, 0), 1.0f);
  };
  return kernel;
}

}  // namespace syntra
