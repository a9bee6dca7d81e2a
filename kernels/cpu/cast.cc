// SPDX-License-Identifier: Apache-2.0
// cast: whole numbers between i32 and f32.
#include "core/thread.h"
#include "kernels/cpu/grain.h"
#include "kernels/operands.h"

namespace syntra {

std::optional<BoundKernel> cpu_cast(const OpCall& call) {
  BoundKernel kernel;
  kernel.run = [y = call.outputs[0]](const KernelArguments& arguments) {
    const auto convert = [&]<typename To>(const auto* x, To* to) {
      ParallelFor(y.shape.size(), kGrain, [=](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) to[i] = static_cast<To>(x[i]);
      });
    };
    if (y.dtype == DType::kI32) {
      convert(Input<float>(arguments, 0), Output<int32_t>(arguments, 0));
    } else {
      convert(Input<int32_t>(arguments, 0), Output<float>(arguments, 0));
    }
  };
  return kernel;
}

}  // namespace syntra
