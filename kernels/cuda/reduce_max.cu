// SPDX-License-Identifier: Apache-2.0
// reduce_max over the last axis: the largest element and its first index, by a warp for each row;
// the gradient goes there.
#include "kernels/cuda/rows.h"
#include "kernels/cuda/warp_rows.h"
#include "kernels/operands.h"

namespace syntra {
namespace {

using namespace gpu;

template <typename T>
struct ReduceMax {
  const T* x;
  T* y;              // null: not needed
  int32_t* indices;  // null: not needed
  int64_t width;

  __device__ void operator()(int64_t row) const {
    float largest = -INFINITY;
    int32_t index = 0x7FFFFFFF;
    ForEachPiece(width, [&](int64_t column, int count) {
      const Eight value = LoadEight(x + row * width + column, count);
#pragma unroll
      for (int k = 0; k < kEight; ++k) {
        if (k < count && value[k] > largest) {
          largest = value[k];
          index = static_cast<int32_t>(column) + k;
        }
      }
    });
    for (int mask = kWarp / 2; mask > 0; mask /= 2) {
      const float other = ShuffleXor(largest, mask);
      const int32_t other_index = ShuffleXor(index, mask);
      if (other > largest || (other == largest && other_index < index)) {
        largest = other;
        index = other_index;
      }
    }
    if (LaneIndex() != 0) return;
    if (index >= width) index = 0;  // a row of -inf
    if (y != nullptr) y[row] = x[row * width + index];
    if (indices != nullptr) indices[row] = index;
  }
};

template <typename T>
struct ReduceMaxGrad {
  const int32_t* indices;
  const T* dy;
  T* dx;
  int64_t width;
  bool accumulate;

  __device__ void operator()(int64_t row, int64_t column, int count) const {
    Eight value = {};
    const int64_t at = indices[row] - column;
#pragma unroll
    for (int k = 0; k < kEight; ++k) value[k] = k == at ? ToFloat(dy[row]) : 0.0f;
    StoreResult(value, dx + row * width + column, count, accumulate);
  }
};

}  // namespace

std::optional<BoundKernel> cuda_reduce_max(const OpCall& call) {
  const TensorType x = call.inputs[0];
  BoundKernel kernel;
  kernel.run = [x](const KernelArguments& arguments) {
    WithActivation(x.dtype, [&](auto type) {
      using T = decltype(type);
      WarpRows(arguments, x.shape.rows(),
               ReduceMax<T>{Input<T>(arguments, 0), Output<T>(arguments, 0),
                            Output<int32_t>(arguments, 1), x.shape[-1]});
    });
  };
  return kernel;
}

std::optional<BoundKernel> cuda_reduce_max_grad(const OpCall& call) {
  const TensorType dx = call.outputs[0];
  BoundKernel kernel;
  kernel.accumulates = true;
  kernel.run = [dx, accumulate = Accumulates(call, 0)](const KernelArguments& arguments) {
    WithActivation(dx.dtype, [&](auto type) {
      using T = decltype(type);
      Rowwise(arguments, dx.shape.rows(), dx.shape[-1],
              ReduceMaxGrad<T>{Input<int32_t>(arguments, 0), Input<T>(arguments, 1),
                               Output<T>(arguments, 0), dx.shape[-1], accumulate});
    });
  };
  return kernel;
}

}  // namespace syntra
