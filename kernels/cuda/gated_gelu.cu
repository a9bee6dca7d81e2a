// SPDX-License-Identifier: Apache-2.0
// gated_gelu: gelu(x) * g with gelu's tanh form (kernels/math/activation.inc). gated_gelu_grad:
// dx = dy g gelu'(x), dg = dy gelu(x).
#include "kernels/cuda/launch.h"
#include "kernels/math/activation.h"
#include "kernels/operands.h"

namespace syntra {
namespace {

using namespace gpu;
using Gelu = scalar::GeluTanh;

template <typename T>
struct GatedGelu {
  const T *x, *g;
  T* y;
  bool accumulate;

  __device__ void operator()(int64_t i, int count) const {
    Eight value = LoadEight(x + i, count);
    const Eight gate = LoadEight(g + i, count);
#pragma unroll
    for (int k = 0; k < kEight; ++k) value[k] = Gelu::Value(value[k]) * gate[k];
    StoreResult(value, y + i, count, accumulate);
  }
};

template <typename T>
struct GatedGeluGrad {
  const T *x, *g, *dy;
  T *dx, *dg;  // null: not needed
  bool accumulate_x, accumulate_g;

  __device__ void operator()(int64_t i, int count) const {
    const Eight value = LoadEight(x + i, count), slope = LoadEight(dy + i, count);
    Eight result;
    if (dg != nullptr) {
#pragma unroll
      for (int k = 0; k < kEight; ++k) result[k] = Gelu::Value(value[k]) * slope[k];
      StoreResult(result, dg + i, count, accumulate_g);
    }
    if (dx != nullptr) {
      const Eight gate = LoadEight(g + i, count);
#pragma unroll
      for (int k = 0; k < kEight; ++k) result[k] = Gelu::Slope(value[k]) * gate[k] * slope[k];
      StoreResult(result, dx + i, count, accumulate_x);
    }
  }
};

bool SameActivations(const OpCall& call) {
  for (const TensorType& type : call.inputs) {
    if (!IsActivation(type) || type.dtype != call.inputs[0].dtype) return false;
  }
  return true;
}

}  // namespace

std::optional<BoundKernel> cuda_gated_gelu(const OpCall& call) {
  const TensorType x = call.inputs[0];
  if (!SameActivations(call) || !call.outputs[0].present()) return std::nullopt;
  BoundKernel kernel;
  kernel.accumulates = true;
  kernel.run = [x, accumulate = Accumulates(call, 0)](const KernelArguments& arguments) {
    WithActivation(x.dtype, [&](auto type) {
      using T = decltype(type);
      Elementwise(arguments, x.shape.size(),
                  GatedGelu<T>{Input<T>(arguments, 0), Input<T>(arguments, 1),
                               Output<T>(arguments, 0), accumulate});
    });
  };
  return kernel;
}

std::optional<BoundKernel> cuda_gated_gelu_grad(const OpCall& call) {
  const TensorType x = call.inputs[0];
  if (!SameActivations(call)) return std::nullopt;
  BoundKernel kernel;
  kernel.accumulates = true;
  kernel.run = [x, accumulate_x = Accumulates(call, 0),
                accumulate_g = Accumulates(call, 1)](const KernelArguments& arguments) {
    WithActivation(x.dtype, [&](auto type) {
      using T = decltype(type);
      Elementwise(arguments, x.shape.size(),
                  GatedGeluGrad<T>{Input<T>(arguments, 0), Input<T>(arguments, 1),
                                   Input<T>(arguments, 2), Output<T>(arguments, 0),
                                   Output<T>(arguments, 1), accumulate_x, accumulate_g});
    });
  };
  return kernel;
}

}  // namespace syntra
