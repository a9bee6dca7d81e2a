// SPDX-License-Identifier: Apache-2.0
// depthwise_conv and its gradient: a vector of columns is summed over the taps in registers. Where
// neighbouring columns have weights of their own, these are gathered.
#include <array>
#include <numeric>

#include "core/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/depthwise_conv.cc"
#include "hwy/foreach_target.h"
#include "kernels/cpu/reduce-inl.h"
#include "kernels/depthwise_call.h"

HWY_BEFORE_NAMESPACE();
namespace syntra {
namespace HWY_NAMESPACE {

// The taps of which a sum consists, with the rows and weights that they read.
struct TapList {
  struct Tap {
    int64_t row;
    const float* weights;  // of group 0
    int64_t number;
  };
  std::array<Tap, DepthwiseCall::kMostTaps> taps;
  int64_t count = 0;

  void Add(int64_t row, const float* weights, int64_t number) {
    taps[count++] = {row, weights + number, number};
  }
  std::span<const Tap> all() const { return {taps.data(), static_cast<size_t>(count)}; }
};

// The terms whose sum is a row of y.
TapList ReadBy(const DepthwiseCall& call, const float* weights, const int32_t* segments,
               int64_t row) {
  TapList list;
  for (int64_t tap = 0; tap < call.taps; ++tap) {
    const int64_t offset = tap - call.left;
    if (!call.Reads(segments, row, offset)) continue;
    list.Add(row + offset, weights + call.weights_of(row), tap);
  }
  return list;
}

// The terms whose sum is a row of dx: those of the rows whose y reads it.
TapList ReadersOf(const DepthwiseCall& call, const float* weights, const int32_t* segments,
                  int64_t row) {
  TapList list;
  for (int64_t tap = 0; tap < call.taps; ++tap) {
    const int64_t offset = call.left - tap;
    if (!call.Reads(segments, row, offset)) continue;
    list.Add(row + offset, weights + call.weights_of(row + offset), tap);
  }
  return list;
}

// The weights of the columns from `column` on: the same for all, or of a group for each lane.
class ColumnWeights {
 public:
  ColumnWeights(const DepthwiseCall& call, int64_t column) : first_(call.group_of(column)) {
    const auto lanes = static_cast<int64_t>(hn::Lanes(FloatTag()));
    const int64_t last = std::min(column + lanes, call.columns) - 1;
    shared_ = call.group_of(last) == first_;
    first_ *= call.taps;
    if (shared_) return;
    int64_t index = 0, rest = call.group_columns() - column % call.group_columns();
    for (int64_t lane = 0; lane < lanes; ++lane) {
      index_[lane] = static_cast<int32_t>(index);
      if (column + lane >= last || --rest > 0) continue;
      index += call.taps;
      rest = call.group_columns();
    }
  }

  HWY_INLINE FloatVector Of(const float* weights) const {
    const FloatTag d;
    if (shared_) return hn::Set(d, weights[first_]);
    return hn::GatherIndex(d, weights + first_, hn::LoadU(hn::RebindToSigned<FloatTag>(), index_));
  }

 private:
  int64_t first_;  // the group's place, then its weights'
  bool shared_;
  int32_t index_[hn::MaxLanes(FloatTag())];
};

// to[row] (+)= sum over the taps of their weights times from[tap's row].
template <typename T, typename MakeList>
void SumTaps(const DepthwiseCall& call, const T* from, T* to, bool accumulate,
             const MakeList& list_of) {
  ParallelFor(call.rows(), RowGrain(call.columns * call.taps), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const TapList list = list_of(row);
      T* target = to + row * call.columns;
      VectorLoop(call.columns, [&](int64_t column, auto lanes) {
        const ColumnWeights weights(call, column);
        FloatVector sum = hn::Zero(FloatTag());
        for (const auto& tap : list.all()) {
          const FloatVector value = Load(from + tap.row * call.columns + column, lanes);
          sum = hn::MulAdd(weights.Of(tap.weights), value, sum);
        }
        StoreResult(sum, target + column, lanes, accumulate);
      });
    }
  });
}

// SumTaps from operand `input` to the first output, with the taps that `list_of` gives for a row.
void SumTapsOf(int input, decltype(ReadBy)& list_of, const DepthwiseCall& call, DType dtype,
               bool accumulate, const KernelArguments& arguments) {
  const auto* weights = Input<float>(arguments, 1);
  const auto* segments = Input<int32_t>(arguments, 2);
  WithActivation(dtype, [&](auto type) {
    using T = decltype(type);
    SumTaps(call, Input<T>(arguments, input), Output<T>(arguments, 0), accumulate,
            [&](int64_t row) { return list_of(call, weights, segments, row); });
  });
}

void DepthwiseConv(const DepthwiseCall& call, DType dtype, bool accumulate,
                   const KernelArguments& arguments) {
  SumTapsOf(0, ReadBy, call, dtype, accumulate, arguments);
}

void DepthwiseInputGrad(const DepthwiseCall& call, DType dtype, bool accumulate,
                        const KernelArguments& arguments) {
  SumTapsOf(3, ReadersOf, call, dtype, accumulate, arguments);
}

// Weights that all positions share. `sums` [taps, columns] is the gradient of each column; a thread
// owns 64 columns, whole cache lines, and takes the rows in order.
void SharedWeightGrad(const DepthwiseCall& call, DType dtype, bool accumulate, float* sums,
                      const KernelArguments& arguments) {
  const auto* weights = Input<float>(arguments, 1);
  const auto* segments = Input<int32_t>(arguments, 2);
  std::fill_n(sums, call.taps * call.columns, 0.0f);
  WithActivation(dtype, [&](auto type) {
    using T = decltype(type);
    const T *x = Input<T>(arguments, 0), *dy = Input<T>(arguments, 3);
    ParallelFor(call.columns, 64, [&](int64_t begin, int64_t end) {
      for (int64_t row = 0; row < call.rows(); ++row) {
        const TapList list = ReadBy(call, weights, segments, row);
        VectorLoop(end - begin, [&](int64_t i, auto lanes) {
          const int64_t column = begin + i;
          const FloatVector gradient = Load(dy + row * call.columns + column, lanes);
          for (const auto& tap : list.all()) {
            float* sum = sums + tap.number * call.columns + column;
            const FloatVector value = Load(x + tap.row * call.columns + column, lanes);
            Store(hn::MulAdd(gradient, value, Load(sum, lanes)), sum, lanes);
          }
        });
      }
    });
  });
  auto* result = Output<float>(arguments, 1);
  const int64_t width = call.group_columns();
  for (int64_t group = 0; group < call.groups; ++group) {
    for (int64_t tap = 0; tap < call.taps; ++tap) {
      const float* first = sums + tap * call.columns + group * width;
      float& of_tap = result[group * call.taps + tap];
      of_tap = std::accumulate(first, first + width, accumulate ? of_tap : 0.0f);
    }
  }
}

// Weights of each position's own.
void OwnWeightGrad(const DepthwiseCall& call, DType dtype, bool accumulate,
                   const KernelArguments& arguments) {
  const auto* weights = Input<float>(arguments, 1);
  const auto* segments = Input<int32_t>(arguments, 2);
  auto* result = Output<float>(arguments, 1);
  const int64_t width = call.group_columns();
  WithActivation(dtype, [&](auto type) {
    using T = decltype(type);
    const T *x = Input<T>(arguments, 0), *dy = Input<T>(arguments, 3);
    ParallelFor(call.rows(), RowGrain(call.columns * call.taps), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        float* of_row = result + call.weights_of(row);
        if (!accumulate) std::fill_n(of_row, call.groups * call.taps, 0.0f);
        const TapList list = ReadBy(call, weights, segments, row);
        for (int64_t group = 0; group < call.groups; ++group) {
          const T* gradient = dy + row * call.columns + group * width;
          for (const auto& tap : list.all()) {
            of_row[group * call.taps + tap.number] +=
                Dot(gradient, x + tap.row * call.columns + group * width, width);
          }
        }
      }
    });
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace syntra
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "kernels/cpu/long_conv.h"

namespace syntra {

HWY_EXPORT(DepthwiseConv);
HWY_EXPORT(DepthwiseInputGrad);
HWY_EXPORT(SharedWeightGrad);
HWY_EXPORT(OwnWeightGrad);

std::optional<BoundKernel> cpu_depthwise_conv(const OpCall& call) {
  const DepthwiseCall depthwise = DepthwiseCall::Of(call);
  if (depthwise.is_long) return BindLongConvolution(call);
  BoundKernel kernel;
  kernel.accumulates = true;
  kernel.run = [depthwise, dtype = call.inputs[0].dtype,
                accumulate = Accumulates(call, 0)](const KernelArguments& arguments) {
    HWY_DYNAMIC_DISPATCH(DepthwiseConv)(depthwise, dtype, accumulate, arguments);
  };
  return kernel;
}

std::optional<BoundKernel> cpu_depthwise_conv_grad(const OpCall& call) {
  const DepthwiseCall depthwise = DepthwiseCall::Of(call);
  if (depthwise.is_long) return BindLongConvolutionGrad(call);
  const bool wants_x = call.outputs[0].present(), wants_weights = call.outputs[1].present();
  BoundKernel kernel;
  kernel.accumulates = true;
  if (wants_weights && !depthwise.dynamic) {
    kernel.workspace_bytes = depthwise.taps * depthwise.columns * sizeof(float);
  }
  kernel.run = [=, dtype = call.inputs[0].dtype, of_x = Accumulates(call, 0),
                of_weights = Accumulates(call, 1)](const KernelArguments& arguments) {
    if (wants_x) HWY_DYNAMIC_DISPATCH(DepthwiseInputGrad)(depthwise, dtype, of_x, arguments);
    if (!wants_weights) return;
    if (depthwise.dynamic) {
      HWY_DYNAMIC_DISPATCH(OwnWeightGrad)(depthwise, dtype, of_weights, arguments);
    } else {
      HWY_DYNAMIC_DISPATCH(SharedWeightGrad)
      (depthwise, dtype, of_weights, reinterpret_cast<float*>(arguments.workspace), arguments);
    }
  };
  return kernel;
}

}  // namespace syntra
#endif
