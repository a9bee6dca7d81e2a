// SPDX-License-Identifier: Apache-2.0
// add_bias: x[.., j] + bias[j]. add_bias_grad: dbias[j] = sum over rows of dy[.., j].
#include "kernels/cuda/reduce.h"
#include "kernels/cuda/rows.h"
#include "kernels/operands.h"

namespace syntra {
namespace {

using namespace gpu;

template <typename T>
struct AddBias {
  const T* x;
  const float* bias;
  T* y;
  int64_t width;
  bool accumulate;

  __device__ void operator()(int64_t row, int64_t column, int count) const {
    const int64_t i = row * width + column;
    Eight value = LoadEight(x + i, count);
    const Eight term = LoadEight(bias + column, count);
#pragma unroll
    for (int k = 0; k < kEight; ++k) value[k] += term[k];
    StoreResult(value, y + i, count, accumulate);
  }
};

// partial[part, j] is the sum of dy over the rows of a part. Each thread sums its own columns.
template <typename T>
__global__ void BiasPartsKernel(const T* dy, int64_t rows, int64_t width, float* partial) {
  const int64_t first = rows * BlockIndex() / BlockCount();
  const int64_t last = rows * (BlockIndex() + 1) / BlockCount();
  for (int64_t column = ThreadIndex(); column < width; column += ThreadCount()) {
    float sum = 0.0f;
    for (int64_t row = first; row < last; ++row) sum += ToFloat(dy[row * width + column]);
    partial[BlockIndex() * width + column] = sum;
  }
}

}  // namespace

std::optional<BoundKernel> cuda_add_bias(const OpCall& call) {
  const TensorType x = call.inputs[0];
  if (!IsActivation(x) || !IsF32(call.inputs[1]) || call.outputs[0].dtype != x.dtype) {
    return std::nullopt;
  }
  BoundKernel kernel;
  kernel.accumulates = true;
  kernel.run = [x, accumulate = Accumulates(call, 0)](const KernelArguments& arguments) {
    WithActivation(x.dtype, [&](auto type) {
      using T = decltype(type);
      Rowwise(arguments, x.shape.rows(), x.shape[-1],
              AddBias<T>{Input<T>(arguments, 0), Input<float>(arguments, 1),
                         Output<T>(arguments, 0), x.shape[-1], accumulate});
    });
  };
  return kernel;
}

std::optional<BoundKernel> cuda_add_bias_grad(const OpCall& call) {
  const TensorType dy = call.inputs[0];
  if (!IsActivation(dy) || !IsF32(call.outputs[0])) return std::nullopt;
  const int64_t rows = dy.shape.rows(), width = dy.shape[-1], parts = PartsOf(rows);
  BoundKernel kernel;
  kernel.accumulates = true;
  kernel.workspace_bytes = parts * width * sizeof(float);
  kernel.run = [=, accumulate = Accumulates(call, 0)](const KernelArguments& arguments) {
    auto* partial = reinterpret_cast<float*>(arguments.workspace);
    WithActivation(dy.dtype, [&](auto type) {
      using T = decltype(type);
      Launch(arguments, {parts, kThreads}, BiasPartsKernel<T>, Input<T>(arguments, 0), rows, width,
             partial);
    });
    SumParts(arguments, partial, parts, width, Output<float>(arguments, 0), accumulate);
  };
  return kernel;
}

}  // namespace syntra
