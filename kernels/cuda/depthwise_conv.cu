// SPDX-License-Identifier: Apache-2.0
// depthwise_conv and its gradient: a thread sums eight neighbouring columns of a row over the taps,
// however many these are. A weight that all positions share is summed by a block, one of a long
// filter by a thread.
#include "kernels/cuda/rows.h"
#include "kernels/depthwise_call.h"
#include "kernels/operands.h"

namespace syntra {
namespace {

using namespace gpu;

// to[row] (+)= sum over the taps of weight times from[tap's row]; `kInput`: over the rows that read
// this one, for dx.
template <typename T, bool kInput>
struct SumTaps {
  DepthwiseCall call;
  const T* from;
  const float* weights;
  const int32_t* segments;
  T* to;
  bool accumulate;

  __device__ void operator()(int64_t row, int64_t column, int count) const {
    Eight sum = {};
    for (int64_t tap = 0; tap < call.taps; ++tap) {
      const int64_t offset = kInput ? call.left - tap : tap - call.left;
      if (!call.Reads(segments, row, offset)) continue;
      const Eight value = LoadEight(from + (row + offset) * call.columns + column, count);
      const float* of_row = weights + call.weights_of(kInput ? row + offset : row) + tap;
      for (int k = 0; k < count; ++k) {
        sum[k] += of_row[call.group_of(column + k) * call.taps] * value[k];
      }
    }
    StoreResult(sum, to + row * call.columns + column, count, accumulate);
  }
};

// What the gradients of weights read and write.
template <typename T>
struct WeightGrad {
  DepthwiseCall call;
  const T *x, *dy;
  const int32_t* segments;
  float* result;
  bool accumulate;

  // The product of column `column` of `row` for `tap`.
  __device__ float Term(int64_t row, int64_t tap, int64_t column) const {
    const int64_t offset = tap - call.left;
    if (!call.Reads(segments, row, offset)) return 0.0f;
    return ToFloat(dy[row * call.columns + column]) *
           ToFloat(x[(row + offset) * call.columns + column]);
  }
};

struct WarpSums {
  float of_warp[kThreads / kWarp];
};

// One block for each weight that all positions share.
template <typename T>
__global__ void SharedWeightGradKernel(WeightGrad<T> grad) {
  const DepthwiseCall& call = grad.call;
  const int64_t group = BlockIndex() / call.taps, tap = BlockIndex() % call.taps;
  const int64_t width = call.group_columns();
  float sum = 0.0f;
  for (int64_t i = ThreadIndex(); i < call.rows() * width; i += ThreadCount()) {
    sum += grad.Term(i / width, tap, group * width + i % width);
  }
  sum = BlockSum(sum, Shared<WarpSums>().of_warp);
  if (ThreadIndex() == 0) StoreResult(sum, grad.result + BlockIndex(), grad.accumulate);
}

// One thread for each weight of long filters, which neighbouring columns have of their own.
template <typename T>
__global__ void LongWeightGradKernel(WeightGrad<T> grad) {
  const DepthwiseCall& call = grad.call;
  const int64_t stride = BlockCount() * ThreadCount();
  for (int64_t i = BlockIndex() * ThreadCount() + ThreadIndex(); i < call.taps * call.columns;
       i += stride) {
    const int64_t tap = i / call.columns, column = i % call.columns;
    float sum = 0.0f;
    for (int64_t example = 0; example < call.batch; ++example) {
      float of_example = 0.0f;
      for (int64_t t = 0; t < call.length; ++t) {
        of_example += grad.Term(example * call.length + t, tap, column);
      }
      sum += of_example;
    }
    StoreResult(sum, grad.result + column * call.taps + tap, grad.accumulate);
  }
}

// One thread for each weight of each position's own.
template <typename T>
__global__ void OwnWeightGradKernel(WeightGrad<T> grad) {
  const DepthwiseCall& call = grad.call;
  const int64_t weights = call.groups * call.taps, width = call.group_columns();
  const int64_t stride = BlockCount() * ThreadCount();
  for (int64_t i = BlockIndex() * ThreadCount() + ThreadIndex(); i < call.rows() * weights;
       i += stride) {
    const int64_t group = i % weights / call.taps;
    float sum = 0.0f;
    for (int64_t k = 0; k < width; ++k) {
      sum += grad.Term(i / weights, i % call.taps, group * width + k);
    }
    StoreResult(sum, grad.result + i, grad.accumulate);
  }
}

}  // namespace

std::optional<BoundKernel> cuda_depthwise_conv(const OpCall& call) {
  const DepthwiseCall depthwise = DepthwiseCall::Of(call);
  BoundKernel kernel;
  kernel.accumulates = true;
  kernel.run = [depthwise, dtype = call.inputs[0].dtype,
                accumulate = Accumulates(call, 0)](const KernelArguments& arguments) {
    WithActivation(dtype, [&](auto type) {
      using T = decltype(type);
      Rowwise(arguments, depthwise.rows(), depthwise.columns,
              SumTaps<T, false>{depthwise, Input<T>(arguments, 0), Input<float>(arguments, 1),
                                Input<int32_t>(arguments, 2), Output<T>(arguments, 0), accumulate});
    });
  };
  return kernel;
}

std::optional<BoundKernel> cuda_depthwise_conv_grad(const OpCall& call) {
  const DepthwiseCall depthwise = DepthwiseCall::Of(call);
  const bool wants_x = call.outputs[0].present(), wants_weights = call.outputs[1].present();
  BoundKernel kernel;
  kernel.accumulates = true;
  kernel.run = [=, dtype = call.inputs[0].dtype, of_x = Accumulates(call, 0),
                of_weights = Accumulates(call, 1)](const KernelArguments& arguments) {
    WithActivation(dtype, [&](auto type) {
      using T = decltype(type);
      const auto* segments = Input<int32_t>(arguments, 2);
      const T* dy = Input<T>(arguments, 3);
      if (wants_x) {
        Rowwise(arguments, depthwise.rows(), depthwise.columns,
                SumTaps<T, true>{depthwise, dy, Input<float>(arguments, 1), segments,
                                 Output<T>(arguments, 0), of_x});
      }
      if (!wants_weights) return;
      const WeightGrad<T> grad{depthwise, Input<T>(arguments, 0),      dy,
                               segments,  Output<float>(arguments, 1), of_weights};
      const int64_t weights = depthwise.groups * depthwise.taps;
      if (depthwise.dynamic) {
        Launch(arguments, GridFor(depthwise.rows() * weights), OwnWeightGradKernel<T>, grad);
      } else if (depthwise.is_long) {
        Launch(arguments, GridFor(weights), LongWeightGradKernel<T>, grad);
      } else {
        Launch(arguments, {weights, kThreads, sizeof(WarpSums)}, SharedWeightGradKernel<T>, grad);
      }
    });
  };
  return kernel;
}

}  // namespace syntra
