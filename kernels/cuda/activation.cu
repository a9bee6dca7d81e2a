// SPDX-License-Identifier: Apache-2.0
// activation and its gradient: the formulas of kernels/math/activation.inc on floats.
#include "kernels/math/activation.h"

#include "kernels/cuda/launch.h"
#include "kernels/operands.h"

namespace syntra {
namespace {

using namespace gpu;

template <typename Function, typename T>
struct Activate {
  const T* x;
  T* y;
  bool accumulate;

  __device__ void operator()(int64_t i, int count) const {
    Eight value = LoadEight(x + i, count);
#pragma unroll
    for (int k = 0; k < kEight; ++k) value[k] = Function::Value(value[k]);
    StoreResult(value, y + i, count, accumulate);
  }
};

template <typename Function, typename T>
struct ActivateGrad {
  const T *from, *dy;
  T* dx;
  bool accumulate;

  __device__ void operator()(int64_t i, int count) const {
    Eight value = LoadEight(from + i, count);
    const Eight gradient = LoadEight(dy + i, count);
#pragma unroll
    for (int k = 0; k < kEight; ++k) value[k] = Function::Slope(value[k]) * gradient[k];
    StoreResult(value, dx + i, count, accumulate);
  }
};

// Calls run(function, element) with the function and the element type of the call.
template <typename Run>
BoundKernel Bind(const OpCall& call, const Run& run) {
  BoundKernel kernel;
  kernel.accumulates = true;
  kernel.run = [kind = call.attributes.Text("kind"), dtype = call.inputs[0].dtype,
                run](const KernelArguments& arguments) {
    scalar::WithActivationFunction(kind, [&](auto function) {
      WithActivation(dtype, [&](auto type) { run(arguments, function, type); });
    });
  };
  return kernel;
}

}  // namespace

std::optional<BoundKernel> cuda_activation(const OpCall& call) {
  return Bind(call, [count = call.inputs[0].shape.size(), accumulate = Accumulates(call, 0)](
                        const KernelArguments& arguments, auto function, auto type) {
    using T = decltype(type);
    Elementwise(arguments, count,
                Activate<decltype(function), T>{Input<T>(arguments, 0), Output<T>(arguments, 0),
                                                accumulate});
  });
}

std::optional<BoundKernel> cuda_activation_grad(const OpCall& call) {
  return Bind(call, [count = call.inputs[0].shape.size(), accumulate = Accumulates(call, 0)](
                        const KernelArguments& arguments, auto function, auto type) {
    using T = decltype(type);
    Elementwise(arguments, count,
                ActivateGrad<decltype(function), T>{Input<T>(arguments, 0), Input<T>(arguments, 1),
                                                    Output<T>(arguments, 0), accumulate});
  });
}

}  // namespace syntra
