// SPDX-License-Identifier: Apache-2.0
// relu_dropout: max(x, 0) times a random mask, per element or shared by all positions of an
// example. Its gradient needs the result alone.
#include "kernels/cuda/noise.h"
#include "kernels/cuda/rows.h"
#include "kernels/math/activation.h"
#include "kernels/operands.h"

namespace syntra {
namespace {

using namespace gpu;

template <typename T>
struct ReluDropout {
  const T* x;
  T* y;
  KeyedMask mask;
  bool accumulate;

  __device__ void operator()(int64_t row, int64_t column, int count) const {
    const int64_t i = row * mask.width + column;
    Eight values = LoadEight(x + i, count);
#pragma unroll
    for (int k = 0; k < kEight; ++k) values[k] = scalar::Relu::Value(values[k]);
    mask.Apply(values, row, column);
    StoreResult(values, y + i, count, accumulate);
  }
};

template <typename T>
struct ReluDropoutGrad {
  const T *y, *dy;
  T* dx;
  float scale;  // 1 / (1 - rate)
  bool accumulate;

  __device__ void operator()(int64_t i, int count) const {
    const Eight result = LoadEight(y + i, count);
    Eight gradient = LoadEight(dy + i, count);
#pragma unroll
    for (int k = 0; k < kEight; ++k) gradient[k] = result[k] > 0.0f ? gradient[k] * scale : 0.0f;
    StoreResult(gradient, dx + i, count, accumulate);
  }
};

}  // namespace

std::optional<BoundKernel> cuda_relu_dropout(const OpCall& call) {
  BoundKernel kernel;
  kernel.accumulates = true;
  kernel.run = [type = call.inputs[0],
                unkeyed = TensorMask::Of(call.attributes, call.inputs[0].shape),
                accumulate = Accumulates(call, 0)](const KernelArguments& arguments) {
    const KeyedMask mask{unkeyed, Input<int32_t>(arguments, 1)};
    WithActivation(type.dtype, [&](auto element) {
      using T = decltype(element);
      Rowwise(arguments, type.shape.rows(), mask.width,
              ReluDropout<T>{Input<T>(arguments, 0), Output<T>(arguments, 0), mask, accumulate});
    });
  };
  return kernel;
}

std::optional<BoundKernel> cuda_relu_dropout_grad(const OpCall& call) {
  BoundKernel kernel;
  kernel.accumulates = true;
  kernel.run = [type = call.inputs[0], scale = Keep::AtRate(call.attributes.Number("rate")).scale,
                accumulate = Accumulates(call, 0)](const KernelArguments& arguments) {
    WithActivation(type.dtype, [&](auto element) {
      using T = decltype(element);
      Elementwise(arguments, type.shape.size(),
                  ReluDropoutGrad<T>{Input<T>(arguments, 0), Input<T>(arguments, 1),
                                     Output<T>(arguments, 0), scale, accumulate});
    });
  };
  return kernel;
}

}  // namespace syntra
