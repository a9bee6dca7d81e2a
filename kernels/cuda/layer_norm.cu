// SPDX-License-Identifier: Apache-2.0
// layer_norm and its gradient (formulas: kernels/ops/layer_norm.cc). A warp computes a row. For the
// gradients of scale and bias a thread sums a column of a part of the rows, then the parts in
// order.
#include "kernels/cuda/reduce.h"
#include "kernels/cuda/warp_rows.h"
#include "kernels/operands.h"

namespace syntra {
namespace {

using namespace gpu;

template <typename T>
struct LayerNorm {
  const T* x;
  const float *scale, *bias;
  T* y;                     // null: not needed
  float *means, *inverses;  // null: not needed
  int64_t width;
  float epsilon;

  __device__ void operator()(int64_t row) const {
    const T* from = x + row * width;
    float sum = 0.0f, squares = 0.0f;
    ForEachPiece(width, [&](int64_t column, int count) {
      const Eight value = LoadEight(from + column, count);
#pragma unroll
      for (int k = 0; k < kEight; ++k) sum += value[k];
    });
    const float mean = WarpSum(sum) / static_cast<float>(width);
    ForEachPiece(width, [&](int64_t column, int count) {
      const Eight value = LoadEight(from + column, count);
#pragma unroll
      for (int k = 0; k < kEight; ++k) {
        const float centered = k < count ? value[k] - mean : 0.0f;
        squares += centered * centered;
      }
    });
    const float variance = WarpSum(squares) / static_cast<float>(width);
    const float inverse = 1.0f / sqrtf(variance + epsilon);
    if (LaneIndex() == 0 && means != nullptr) means[row] = mean;
    if (LaneIndex() == 0 && inverses != nullptr) inverses[row] = inverse;
    if (y == nullptr) return;
    ForEachPiece(width, [&](int64_t column, int count) {
      Eight value = LoadEight(from + column, count);
      const Eight by = LoadEight(scale + column, count), shift = LoadEight(bias + column, count);
#pragma unroll
      for (int k = 0; k < kEight; ++k) value[k] = (value[k] - mean) * inverse * by[k] + shift[k];
      StoreEight(value, y + row * width + column, count);
    });
  }
};

template <typename T>
struct LayerNormGrad {
  const T* x;
  const float *scale, *means, *inverses;
  const T* dy;
  T* dx;
  int64_t width;
  bool accumulate;

  __device__ void operator()(int64_t row) const {
    const float mean = means[row], inverse = inverses[row];
    float sum = 0.0f, dot = 0.0f;
    const auto each = [&](const auto& use) {
      ForEachPiece(width, [&](int64_t column, int count) {
        Eight normal = LoadEight(x + row * width + column, count);
        Eight slope = LoadEight(dy + row * width + column, count);
        const Eight by = LoadEight(scale + column, count);
#pragma unroll
        for (int k = 0; k < kEight; ++k) {
          normal[k] = (normal[k] - mean) * inverse;
          slope[k] *= by[k];
        }
        use(column, count, normal, slope);
      });
    };
    each([&](int64_t, int, const Eight& normal, const Eight& slope) {
#pragma unroll
      for (int k = 0; k < kEight; ++k) {
        sum += slope[k];
        dot += slope[k] * normal[k];
      }
    });
    const float of_sum = WarpSum(sum) / static_cast<float>(width);
    const float of_dot = WarpSum(dot) / static_cast<float>(width);
    each([&](int64_t column, int count, const Eight& normal, Eight slope) {
#pragma unroll
      for (int k = 0; k < kEight; ++k) {
        slope[k] = inverse * (slope[k] - of_sum - normal[k] * of_dot);
      }
      StoreResult(slope, dx + row * width + column, count, accumulate);
    });
  }
};

// scales[part, j] is the sum of dy n over the rows of a part, biases[part, j] that of dy.
template <typename T>
__global__ void ColumnPartsKernel(const T* x, const float* means, const float* inverses,
                                  const T* dy, int64_t rows, int64_t width, float* scales,
                                  float* biases) {
  const int64_t first = rows * BlockIndex() / BlockCount();
  const int64_t last = rows * (BlockIndex() + 1) / BlockCount();
  for (int64_t column = ThreadIndex(); column < width; column += ThreadCount()) {
    float of_scale = 0.0f, of_bias = 0.0f;
    for (int64_t row = first; row < last; ++row) {
      const float slope = ToFloat(dy[row * width + column]);
      of_scale += slope * (ToFloat(x[row * width + column]) - means[row]) * inverses[row];
      of_bias += slope;
    }
    scales[BlockIndex() * width + column] = of_scale;
    biases[BlockIndex() * width + column] = of_bias;
  }
}

}  // namespace

std::optional<BoundKernel> cuda_layer_norm(const OpCall& call) {
  const TensorType x = call.inputs[0];
  BoundKernel kernel;
  kernel.run = [x, epsilon = static_cast<float>(call.attributes.Number("epsilon"))](
                   const KernelArguments& arguments) {
    WithActivation(x.dtype, [&](auto type) {
      using T = decltype(type);
      WarpRows(arguments, x.shape.rows(),
               LayerNorm<T>{Input<T>(arguments, 0), Input<float>(arguments, 1),
                            Input<float>(arguments, 2), Output<T>(arguments, 0),
                            Output<float>(arguments, 1), Output<float>(arguments, 2), x.shape[-1],
                            epsilon});
    });
  };
  return kernel;
}

std::optional<BoundKernel> cuda_layer_norm_grad(const OpCall& call) {
  const TensorType x = call.inputs[0];
  const int64_t rows = x.shape.rows(), width = x.shape[-1], parts = PartsOf(rows);
  BoundKernel kernel;
  kernel.accumulates = true;
  kernel.workspace_bytes = 2 * parts * width * sizeof(float);
  kernel.run = [=, accumulate = call.accumulate](const KernelArguments& arguments) {
    const float *means = Input<float>(arguments, 2), *inverses = Input<float>(arguments, 3);
    float *dscale = Output<float>(arguments, 1), *dbias = Output<float>(arguments, 2);
    auto* scales = reinterpret_cast<float*>(arguments.workspace);
    float* biases = scales + parts * width;
    WithActivation(x.dtype, [&](auto type) {
      using T = decltype(type);
      const T *from = Input<T>(arguments, 0), *dy = Input<T>(arguments, 4);
      if (T* dx = Output<T>(arguments, 0)) {
        WarpRows(arguments, rows,
                 LayerNormGrad<T>{from, Input<float>(arguments, 1), means, inverses, dy, dx, width,
                                  accumulate[0]});
      }
      if (dscale == nullptr && dbias == nullptr) return;
      Launch(arguments, {parts, kThreads}, ColumnPartsKernel<T>, from, means, inverses, dy, rows,
             width, scales, biases);
    });
    if (dscale) SumParts(arguments, scales, parts, width, dscale, accumulate[1]);
    if (dbias) SumParts(arguments, biases, parts, width, dbias, accumulate[2]);
  };
  return kernel;
}

}  // namespace syntra
