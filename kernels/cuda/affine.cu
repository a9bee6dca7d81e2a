// SPDX-License-Identifier: Apache-2.0
// affine: y = scale x + shift.
#include "kernels/cuda/launch.h"
#include "kernels/operands.h"

namespace syntra {
namespace {

using namespace gpu;

template <typename T>
struct Affine {
  const T* x;
  T* y;
  float scale, shift;
  bool accumulate;

  __device__ void operator()(int64_t i, int count) const {
    Eight value = LoadEight(x + i, count);
#pragma unroll
    for (int k = 0; k < kEight; ++k) value[k] = scale * value[k] + shift;
    StoreResult(value, y + i, count, accumulate);
  }
};

}  // namespace

std::optional<BoundKernel> cuda_affine(const OpCall& call) {
  const TensorType x = call.inputs[0];
  BoundKernel kernel;
  kernel.accumulates = true;
  kernel.run = [x, scale = static_cast<float>(call.attributes.Number("scale")),
                shift = static_cast<float>(call.attributes.Number("shift")),
                accumulate = Accumulates(call, 0)](const KernelArguments& arguments) {
    WithActivation(x.dtype, [&](auto type) {
      using T = decltype(type);
      Elementwise(
          arguments, x.shape.size(),
          Affine<T>{Input<T>(arguments, 0), Output<T>(arguments, 0), scale, shift, accumulate});
    });
  };
  return kernel;
}

}  // namespace syntra
