// SPDX-License-Identifier: Apache-2.0
// relu: y = max(x, 0). relu_grad: dx = dy where y > 0.
#include "kernels/cuda/launch.h"
#include "kernels/operands.h"

namespace syntra {
namespace {

using namespace gpu;

template <typename T>
struct Relu {
  const T* x;
  T* y;
  bool accumulate;

  __device__ void operator()(int64_t i, int count) const {
    Eight value = LoadEight(x + i, count);
#pragma unroll
    for (int k = 0; k < kEight; ++k) value[k] = value[k] > 0.0f ? value[k] : 0.0f;
    StoreResult(value, y + i, count, accumulate);
  }
};

template <typename T>
struct ReluGrad {
  const T *y, *dy;
  T* dx;
  bool accumulate;

  __device__ void operator()(int64_t i, int count) const {
    const Eight value = LoadEight(y + i, count);
    Eight gradient = LoadEight(dy + i, count);
#pragma unroll
    for (int k = 0; k < kEight; ++k) gradient[k] = value[k] > 0.0f ? gradient[k] : 0.0f;
    StoreResult(gradient, dx + i, count, accumulate);
  }
};

}  // namespace

std::optional<BoundKernel> cuda_relu(const OpCall& call) {
  const TensorType x = call.inputs[0];
  if (!IsActivation(x) || !call.outputs[0].present()) return std::nullopt;
  BoundKernel kernel;
  kernel.accumulates = true;
  kernel.run = [x, accumulate = Accumulates(call, 0)](const KernelArguments& arguments) {
    WithActivation(x.dtype, [&](auto type) {
      using T = decltype(type);
      Elementwise(arguments, x.shape.size(),
                  Relu<T>{Input<T>(arguments, 0), Output<T>(arguments, 0), accumulate});
    });
  };
  return kernel;
}

std::optional<BoundKernel> cuda_relu_grad(const OpCall& call) {
  const TensorType y = call.inputs[0];
  if (!IsActivation(y) || call.inputs[1].dtype != y.dtype || !call.outputs[0].present()) {
    return std::nullopt;
  }
  BoundKernel kernel;
  kernel.accumulates = true;
  kernel.run = [y, accumulate = Accumulates(call, 0)](const KernelArguments& arguments) {
    WithActivation(y.dtype, [&](auto type) {
      using T = decltype(type);
      Elementwise(arguments, y.shape.size(),
                  ReluGrad<T>{Input<T>(arguments, 0), Input<T>(arguments, 1),
                              Output<T>(arguments, 0), accumulate});
    });
  };
  return kernel;
}

}  // namespace syntra
