// SPDX-License-Identifier: Apache-2.0
// cumulative_sum: a thread sums eight neighbouring columns along the axis. Along the last axis a
// warp sums a row, 32 elements at a time.
#include "kernels/cuda/rows.h"
#include "kernels/cuda/warp_rows.h"
#include "kernels/operands.h"
#include "kernels/strides.h"

namespace syntra {
namespace {

using namespace gpu;

template <typename T>
struct SumColumns {
  const T* x;
  T* y;
  int64_t length, inner;
  bool reverse, exclusive, accumulate;

  __device__ void operator()(int64_t outer, int64_t column, int count) const {
    Eight sum = {};
    for (int64_t n = 0; n < length; ++n) {
      const int64_t i = (outer * length + (reverse ? length - 1 - n : n)) * inner + column;
      const Eight value = LoadEight(x + i, count);
      if (exclusive) StoreResult(sum, y + i, count, accumulate);
      sum += value;
      if (!exclusive) StoreResult(sum, y + i, count, accumulate);
    }
  }
};

template <typename T>
struct SumRow {
  const T* x;
  T* y;
  int64_t length;
  bool reverse, exclusive, accumulate;

  __device__ void operator()(int64_t row) const {
    float before = 0.0f;  // the sum of the elements before these 32
    for (int64_t first = 0; first < length; first += kWarp) {
      const int64_t n = first + LaneIndex();
      const int64_t i = row * length + (reverse ? length - 1 - n : n);
      const float sum = SumToLane(n < length ? ToFloat(x[i]) : 0.0f);
      const float previous = ValueBefore(sum, 1);
      if (n < length) StoreResult(before + (exclusive ? previous : sum), y + i, accumulate);
      before += ShuffleFrom(sum, kWarp - 1);
    }
  }
};

}  // namespace

std::optional<BoundKernel> cuda_cumulative_sum(const OpCall& call) {
  const TensorType x = call.inputs[0];
  const auto axis = static_cast<int>(call.attributes.Int("axis"));
  const int64_t length = x.shape[axis], inner = DenseStrides(x.shape)[axis];
  const int64_t outer = x.shape.size() / (length * inner);
  const bool reverse = call.attributes.Flag("reverse");
  const bool exclusive = call.attributes.Flag("exclusive");
  BoundKernel kernel;
  kernel.accumulates = true;
  kernel.run = [=, accumulate = Accumulates(call, 0)](const KernelArguments& arguments) {
    WithActivation(x.dtype, [&](auto type) {
      using T = decltype(type);
      const T* from = Input<T>(arguments, 0);
      T* to = Output<T>(arguments, 0);
      if (inner == 1) {
        WarpRows(arguments, outer, SumRow<T>{from, to, length, reverse, exclusive, accumulate});
      } else {
        Rowwise(arguments, outer, inner,
                SumColumns<T>{from, to, length, inner, reverse, exclusive, accumulate});
      }
    });
  };
  return kernel;
}

}  // namespace syntra
