// SPDX-License-Identifier: Apache-2.0
// depthwise_conv and its gradient: a thread sums eight neighbouring columns of a row over the taps,
// however many these are. A weight that all positions share is summed over parts of the rows, one
// of a long filter by a thread.
#include "base/divide.h"
#include "kernels/cuda/reduce.h"
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
#pragma unroll
      for (int k = 0; k < kEight; ++k) {
        if (k < count) sum[k] += of_row[call.group_of(column + k) * call.taps] * value[k];
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

// The gradients of weights that all positions share: first of parts of the rows, a filter for each
// column; then over the parts and the columns of a group.
struct SharedWeights {
  static constexpr int64_t kTapsAtOnce = 8;  // by a thread
  static constexpr int64_t kMostParts = 16;  // with a few hundred columns they fill a GPU

  int64_t parts, column_blocks, tap_blocks;

  static SharedWeights Of(const DepthwiseCall& call) {
    constexpr int64_t kLeastRows = kThreads / kWarp;  // of a part: one for each warp
    return {.parts = std::clamp<int64_t>(call.rows() / kLeastRows, 1, kMostParts),
            .column_blocks = DivideUp(call.columns, kWarp),
            .tap_blocks = DivideUp(call.taps, kTapsAtOnce)};
  }
  int64_t blocks() const { return parts * column_blocks * tap_blocks; }
};

// partial[part, tap, column]. The lanes of a warp have neighbouring columns, and the warps of a
// block take turns with the rows.
template <typename T>
__global__ void WeightPartsKernel(WeightGrad<T> grad, SharedWeights shared, float* partial) {
  const DepthwiseCall& call = grad.call;
  const int64_t column = BlockIndex() % shared.column_blocks * kWarp + LaneIndex();
  const int64_t block = BlockIndex() / shared.column_blocks;
  const int64_t first_tap = block % shared.tap_blocks * SharedWeights::kTapsAtOnce;
  const int64_t part = block / shared.tap_blocks;
  const int64_t end = column < call.columns ? call.rows() * (part + 1) / shared.parts : 0;
  int64_t row = call.rows() * part / shared.parts + WarpIndex();
  int64_t position = row % call.length;
  float sums[SharedWeights::kTapsAtOnce] = {};
  for (; row < end; row += WarpCount()) {
    const float dy = ToFloat(grad.dy[row * call.columns + column]);
    const int32_t segment = grad.segments ? grad.segments[row] : 1;
#pragma unroll
    for (int k = 0; k < SharedWeights::kTapsAtOnce; ++k) {
      const int64_t offset = first_tap + k - call.left;
      const bool is_there = first_tap + k < call.taps && position + offset >= 0 &&
                            position + offset < call.length && segment != 0;
      if (!is_there || (grad.segments && grad.segments[row + offset] != segment)) continue;
      sums[k] += dy * ToFloat(grad.x[(row + offset) * call.columns + column]);
    }
    position += WarpCount();
    while (position >= call.length) position -= call.length;
  }
#pragma unroll
  for (int k = 0; k < SharedWeights::kTapsAtOnce; ++k) {
    const float sum = SumOverWarps(sums[k], Shared<ColumnStorage>());
    if (WarpIndex() == 0 && column < call.columns && first_tap + k < call.taps) {
      partial[(part * call.taps + first_tap + k) * call.columns + column] = sum;
    }
    SyncThreads();
  }
}

// One warp for each weight.
template <typename T>
__global__ void FinishWeightsKernel(WeightGrad<T> grad, int64_t parts, const float* partial) {
  const DepthwiseCall& call = grad.call;
  const int64_t group = BlockIndex() / call.taps, tap = BlockIndex() % call.taps;
  const int64_t width = call.group_columns();
  float sum = 0.0f;
  for (int64_t i = LaneIndex(); i < parts * width; i += kWarp) {
    sum += partial[(i / width * call.taps + tap) * call.columns + group * width + i % width];
  }
  sum = WarpSum(sum);
  if (LaneIndex() == 0) StoreResult(sum, grad.result + BlockIndex(), grad.accumulate);
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
  const bool shares = wants_weights && !depthwise.dynamic && !depthwise.is_long;
  const SharedWeights shared = SharedWeights::Of(depthwise);
  if (shares) {
    kernel.workspace_bytes = shared.parts * depthwise.taps * depthwise.columns * sizeof(float);
  }
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
        auto* partial = reinterpret_cast<float*>(arguments.workspace);
        Launch(arguments, {shared.blocks(), kThreads, sizeof(ColumnStorage)}, WeightPartsKernel<T>,
               grad, shared, partial);
        Launch(arguments, {weights, kWarp}, FinishWeightsKernel<T>, grad, shared.parts, partial);
      }
    });
  };
  return kernel;
}

}  // namespace syntra
