// SPDX-License-Identifier: Apache-2.0
// row_dot: y[h, n] = sum_r a[h,n,r] b[h,n,r]. Its gradient: da = d b, db = d a, row by row.
#include "kernels/cuda/rows.h"
#include "kernels/operands.h"

namespace syntra {
namespace {

using namespace gpu;

// One warp per row.
__global__ void RowDotKernel(const float* a, const float* b, float* y, int64_t rows, int64_t width,
                             bool accumulate) {
  const int64_t stride = BlockCount() * WarpCount();
  for (int64_t row = BlockIndex() * WarpCount() + WarpIndex(); row < rows; row += stride) {
    float sum = 0.0f;
    for (int64_t r = LaneIndex(); r < width; r += kWarp)
      sum += a[row * width + r] * b[row * width + r];
    sum = WarpSum(sum);
    if (LaneIndex() == 0) StoreResult(sum, y + row, accumulate);
  }
}

// to[row, :] = d[row] * from[row, :].
struct ScaleRows {
  const float *d, *from;
  float* to;
  int64_t width;
  bool accumulate;

  __device__ void operator()(int64_t row, int64_t column, int count) const {
    const int64_t i = row * width + column;
    Eight value = LoadEight(from + i, count);
    const float scale = d[row];
#pragma unroll
    for (int k = 0; k < kEight; ++k) value[k] *= scale;
    StoreResult(value, to + i, count, accumulate);
  }
};

}  // namespace

std::optional<BoundKernel> cuda_row_dot(const OpCall& call) {
  if (!IsF32(call.inputs[0]) || !IsF32(call.inputs[1])) return std::nullopt;
  const int64_t rows = call.inputs[0].shape.rows(), width = call.inputs[0].shape[-1];
  BoundKernel kernel;
  kernel.accumulates = true;
  kernel.run = [=, accumulate = Accumulates(call, 0)](const KernelArguments& arguments) {
    Launch(arguments, GridFor(rows * kWarp), RowDotKernel, Input<float>(arguments, 0),
           Input<float>(arguments, 1), Output<float>(arguments, 0), rows, width, accumulate);
  };
  return kernel;
}

std::optional<BoundKernel> cuda_row_dot_grad(const OpCall& call) {
  for (const TensorType& type : call.inputs) {
    if (!IsF32(type)) return std::nullopt;
  }
  const int64_t rows = call.inputs[0].shape.rows(), width = call.inputs[0].shape[-1];
  BoundKernel kernel;
  kernel.accumulates = true;
  kernel.run = [=, accumulate = call.accumulate](const KernelArguments& arguments) {
    for (int i = 0; i < 2; ++i) {
      if (arguments.outputs[i] == nullptr) continue;
      Rowwise(arguments, rows, width,
              ScaleRows{Input<float>(arguments, 2), Input<float>(arguments, 1 - i),
                        Output<float>(arguments, i), width, accumulate[i]});
    }
  };
  return kernel;
}

}  // namespace syntra
