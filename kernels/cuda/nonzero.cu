// SPDX-License-Identifier: Apache-2.0
// nonzero: 1 where x is not 0, else 0.
#include "kernels/cuda/launch.h"
#include "kernels/operands.h"

namespace syntra {
namespace {

using namespace gpu;

template <typename T>
struct Nonzero {
  const int32_t* x;
  T* y;

  __device__ void operator()(int64_t i, int count) const {
    Eight value;
#pragma unroll
    for (int k = 0; k < kEight; ++k) value[k] = k < count && x[i + k] != 0 ? 1.0f : 0.0f;
    StoreEight(value, y + i, count);
  }
};

}  // namespace

std::optional<BoundKernel> cuda_nonzero(const OpCall& call) {
  BoundKernel kernel;
  kernel.run = [y = call.outputs[0]](const KernelArguments& arguments) {
    WithActivation(y.dtype, [&](auto type) {
      using T = decltype(type);
      Elementwise(arguments, y.shape.size(),
                  Nonzero<T>{Input<int32_t>(arguments, 0), Output<T>(arguments, 0)});
    });
  };
  return kernel;
}

}  // namespace syntra
