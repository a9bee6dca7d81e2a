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

__device__ int64_t Larger(int64_t a, int64_t b) { return a > b ? a : b; }
__device__ int64_t Smaller(int64_t a, int64_t b) { return a < b ? a : b; }

// Where the filters of eight neighbouring columns begin, counted from the first column's.
struct Filters {
  int64_t first;
  int32_t after[kEight];
  bool one;  // all columns are of one group

  // Columns beyond `count` get the last one's filter, which may be loaded. One division finds the
  // first group; the others are counted from there.
  __device__ static Filters Of(const DepthwiseCall& call, int64_t column, int count) {
    const auto width = static_cast<uint32_t>(call.group_columns());
    const uint32_t group = static_cast<uint32_t>(column) / width;
    uint32_t left = width - (static_cast<uint32_t>(column) - group * width);
    const auto taps = static_cast<int32_t>(call.taps);
    Filters result = {.first = group * call.taps};
    for (int k = 1; k < kEight; ++k) {
      const bool next = k < count && --left == 0;
      if (next) left = width;
      result.after[k] = result.after[k - 1] + (next ? taps : 0);
    }
    result.one = result.after[kEight - 1] == 0;
    return result;
  }
};

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
    const Filters filters = Filters::Of(call, column, count);
    const Eight sum = filters.one ? Sum<true>(row, column, count, filters)
                                  : Sum<false>(row, column, count, filters);
    StoreResult(sum, to + row * call.columns + column, count, accumulate);
  }

  // Over the taps whose rows lie in the sequence: at least the one that reads its own row.
  template <bool kOneFilter>
  __device__ Eight Sum(int64_t row, int64_t column, int count, const Filters& filters) const {
    constexpr int kStep = kInput ? -1 : 1;  // from a tap's row to the next tap's
    const int64_t before = row % call.length, after = call.length - 1 - before;
    const int64_t first = Larger(0, call.left - (kInput ? after : before));
    const int64_t end = Smaller(call.taps, call.left + (kInput ? before : after) + 1);
    const int64_t other = row + kStep * (first - call.left);
    const T* value_at = from + other * call.columns + column;
    const float* filter = weights + call.weights_of(kInput ? other : row) + filters.first + first;
    const int64_t next_filter = kInput ? 1 - call.weights_of(1) : 1;
    const bool packed = segments != nullptr;
    const int32_t segment = packed ? segments[row] : 1;
    Eight sum = {};
    if (segment == 0) return sum;
    for (int i = 0; i < static_cast<int>(end - first); ++i) {
      if (!packed || segments[other + kStep * i] == segment) {
        const Eight value = LoadEight(value_at, count);
#pragma unroll
        for (int k = 0; k < kEight; ++k) {
          sum[k] += filter[kOneFilter ? 0 : filters.after[k]] * value[k];
        }
      }
      value_at += kStep * call.columns;
      filter += next_filter;
    }
    return sum;
  }
};

// The operands that the gradients of weights read and write.
template <typename T>
struct WeightGrad {
  DepthwiseCall call;
  const T *x, *dy;
  const int32_t* segments;
  float* result;
  bool accumulate;

  // The sum of `count` products of dy and x, `step` elements apart. The first are of this column of
  // dy's row, and of x's row `offset` after it.
  __device__ float Sum(int64_t row, int64_t offset, int64_t column, int64_t count,
                       int64_t step) const {
    const T* dy_at = dy + row * call.columns + column;
    const T* x_at = x + (row + offset) * call.columns + column;
    float sum = 0.0f;
#pragma unroll 4
    for (auto i = static_cast<int>(count); i > 0; --i) {
      sum += ToFloat(*dy_at) * ToFloat(*x_at);
      dy_at += step;
      x_at += step;
    }
    return sum;
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
  ForThreadItems(call.taps * call.columns, [&](int64_t i) {
    const int64_t tap = i / call.columns, column = i % call.columns, offset = tap - call.left;
    const int64_t first = Larger(0, -offset), end = call.length - Larger(0, offset);
    const int64_t examples = end > first ? call.batch : 0;
    float sum = 0.0f;
    for (int64_t row = first; row < examples * call.length; row += call.length) {
      sum += grad.Sum(row, offset, column, end - first, call.columns);
    }
    StoreResult(sum, grad.result + column * call.taps + tap, grad.accumulate);
  });
}

// One thread for each weight of each position's own.
template <typename T>
__global__ void OwnWeightGradKernel(WeightGrad<T> grad) {
  const DepthwiseCall& call = grad.call;
  const int64_t weights = call.groups * call.taps, width = call.group_columns();
  ForThreadItems(call.rows() * weights, [&](int64_t i) {
    const int64_t row = i / weights, group = i % weights / call.taps;
    const int64_t offset = i % call.taps - call.left;
    const bool reads = call.Reads(grad.segments, row, offset);
    const float sum = reads ? grad.Sum(row, offset, group * width, width, 1) : 0.0f;
    StoreResult(sum, grad.result + i, grad.accumulate);
  });
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
