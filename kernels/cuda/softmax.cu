// SPDX-License-Identifier: Apache-2.0
// softmax over the last axis and its gradient, dx = y (dy - sum of y dy). A warp computes a row.
#include "kernels/cuda/warp_rows.h"
#include "kernels/operands.h"

namespace syntra {
namespace {

using namespace gpu;

template <typename T>
struct Softmax {
  const T* x;
  T* y;
  int64_t width;
  bool accumulate;

  __device__ void operator()(int64_t row) const {
    const T* from = x + row * width;
    float largest = -INFINITY, sum = 0.0f;
    ForEachPiece(width, [&](int64_t column, int count) {
      const Eight value = LoadEight(from + column, count);
#pragma unroll
      for (int k = 0; k < kEight; ++k) largest = k < count ? fmaxf(largest, value[k]) : largest;
    });
    largest = WarpMax(largest);
    ForEachPiece(width, [&](int64_t column, int count) {
      const Eight value = LoadEight(from + column, count);
#pragma unroll
      for (int k = 0; k < kEight; ++k) sum += k < count ? expf(value[k] - largest) : 0.0f;
    });
    const float scale = 1.0f / WarpSum(sum);
    ForEachPiece(width, [&](int64_t column, int count) {
      Eight value = LoadEight(from + column, count);
#pragma unroll
      for (int k = 0; k < kEight; ++k) value[k] = expf(value[k] - largest) * scale;
      StoreResult(value, y + row * width + column, count, accumulate);
    });
  }
};

template <typename T>
struct SoftmaxGrad {
  const T *y, *dy;
  T* dx;
  int64_t width;
  bool accumulate;

  __device__ void operator()(int64_t row) const {
    float sum = 0.0f;
    ForEachPiece(width, [&](int64_t column, int count) {
      const Eight value = LoadEight(y + row * width + column, count);
      const Eight slope = LoadEight(dy + row * width + column, count);
#pragma unroll
      for (int k = 0; k < kEight; ++k) sum += value[k] * slope[k];
    });
    const float mean = WarpSum(sum);
    ForEachPiece(width, [&](int64_t column, int count) {
      Eight value = LoadEight(y + row * width + column, count);
      const Eight slope = LoadEight(dy + row * width + column, count);
#pragma unroll
      for (int k = 0; k < kEight; ++k) value[k] *= slope[k] - mean;
      StoreResult(value, dx + row * width + column, count, accumulate);
    });
  }
};

}  // namespace

std::optional<BoundKernel> cuda_softmax(const OpCall& call) {
  const TensorType x = call.inputs[0];
  BoundKernel kernel;
  kernel.accumulates = true;
  kernel.run = [x, accumulate = Accumulates(call, 0)](const KernelArguments& arguments) {
    WithActivation(x.dtype, [&](auto type) {
      using T = decltype(type);
      WarpRows(
          arguments, x.shape.rows(),
          Softmax<T>{Input<T>(arguments, 0), Output<T>(arguments, 0), x.shape[-1], accumulate});
    });
  };
  return kernel;
}

std::optional<BoundKernel> cuda_softmax_grad(const OpCall& call) {
  const TensorType y = call.inputs[0];
  BoundKernel kernel;
  kernel.accumulates = true;
  kernel.run = [y, accumulate = Accumulates(call, 0)](const KernelArguments& arguments) {
    WithActivation(y.dtype, [&](auto type) {
      using T = decltype(type);
      WarpRows(arguments, y.shape.rows(),
               SoftmaxGrad<T>{Input<T>(arguments, 0), Input<T>(arguments, 1),
                              Output<T>(arguments, 0), y.shape[-1], accumulate});
    });
  };
  return kernel;
}

}  // namespace syntra
