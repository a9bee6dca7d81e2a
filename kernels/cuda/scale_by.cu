// SPDX-License-Identifier: Apache-2.0
// scale_by: x * weights[index]. Its gradient: dx = dy * weights[index], dweights[index] = sum of x
// * dy.
#include "kernels/cuda/reduce.h"
#include "kernels/operands.h"

namespace syntra {
namespace {

using namespace gpu;

template <typename T>
struct ScaleBy {
  const T* x;
  const float* weight;
  T* y;
  bool accumulate;

  __device__ void operator()(int64_t i, int count) const {
    Eight value = LoadEight(x + i, count);
    const float scale = *weight;
#pragma unroll
    for (int k = 0; k < kEight; ++k) value[k] *= scale;
    StoreResult(value, y + i, count, accumulate);
  }
};

// Only weights[index] has a gradient; those of the others are zero.
struct StoreWeight {
  float* dweights;
  int64_t count, index;
  bool accumulate;

  __device__ void operator()(double sum) const {
    for (int64_t i = 0; i < count; ++i) {
      if (i == index || !accumulate) {
        StoreResult(i == index ? static_cast<float>(sum) : 0.0f, dweights + i, accumulate);
      }
    }
  }
};

}  // namespace

std::optional<BoundKernel> cuda_scale_by(const OpCall& call) {
  const TensorType x = call.inputs[0];
  if (!IsActivation(x) || !IsF32(call.inputs[1]) || !call.outputs[0].present()) {
    return std::nullopt;
  }
  BoundKernel kernel;
  kernel.accumulates = true;
  kernel.run = [x, index = call.attributes.Int("index"),
                accumulate = Accumulates(call, 0)](const KernelArguments& arguments) {
    WithActivation(x.dtype, [&](auto type) {
      using T = decltype(type);
      Elementwise(arguments, x.shape.size(),
                  ScaleBy<T>{Input<T>(arguments, 0), Input<float>(arguments, 1) + index,
                             Output<T>(arguments, 0), accumulate});
    });
  };
  return kernel;
}

std::optional<BoundKernel> cuda_scale_by_grad(const OpCall& call) {
  const TensorType x = call.inputs[0];
  if (!IsActivation(x) || !IsF32(call.inputs[1]) || call.inputs[2].dtype != x.dtype) {
    return std::nullopt;
  }
  BoundKernel kernel;
  kernel.accumulates = true;
  kernel.workspace_bytes = kSumBytes;
  kernel.run = [x, index = call.attributes.Int("index"), weights = call.inputs[1].shape.size(),
                accumulate_x = Accumulates(call, 0),
                accumulate_weights = Accumulates(call, 1)](const KernelArguments& arguments) {
    const int64_t count = x.shape.size();
    WithActivation(x.dtype, [&](auto type) {
      using T = decltype(type);
      const T *value = Input<T>(arguments, 0), *dy = Input<T>(arguments, 2);
      if (T* dx = Output<T>(arguments, 0)) {
        Elementwise(arguments, count,
                    ScaleBy<T>{dy, Input<float>(arguments, 1) + index, dx, accumulate_x});
      }
      if (auto* dweights = Output<float>(arguments, 1)) {
        SumElements(arguments, count, ProductTerm<T, T>{value, dy},
                    reinterpret_cast<double*>(arguments.workspace),
                    StoreWeight{dweights, weights, index, accumulate_weights});
      }
    });
  };
  return kernel;
}

}  // namespace syntra
