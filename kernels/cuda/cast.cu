// SPDX-License-Identifier: Apache-2.0
// cast: whole numbers between i32 and f32.
#include "kernels/cuda/launch.h"
#include "kernels/operands.h"

namespace syntra {
namespace {

using namespace gpu;

template <typename From, typename To>
struct Cast {
  const From* x;
  To* y;

  __device__ void operator()(int64_t i, int count) const {
    for (int k = 0; k < count; ++k) y[i + k] = static_cast<To>(x[i + k]);
  }
};

template <typename From, typename To>
void Convert(const KernelArguments& arguments, int64_t count) {
  Elementwise(arguments, count,
              Cast<From, To>{Input<From>(arguments, 0), Output<To>(arguments, 0)});
}

}  // namespace

std::optional<BoundKernel> cuda_cast(const OpCall& call) {
  BoundKernel kernel;
  kernel.run = [y = call.outputs[0]](const KernelArguments& arguments) {
    if (y.dtype == DType::kI32) return Convert<float, int32_t>(arguments, y.shape.size());
    Convert<int32_t, float>(arguments, y.shape.size());
  };
  return kernel;
}

}  // namespace syntra
