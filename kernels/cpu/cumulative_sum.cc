// SPDX-License-Identifier: Apache-2.0
// cumulative_sum: rows along the axis, one after the other, are added to sums in f32.
#include "base/divide.h"
#include "core/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/cumulative_sum.cc"
#include "hwy/foreach_target.h"
#include "kernels/cpu/reduce-inl.h"
#include "kernels/strides.h"

HWY_BEFORE_NAMESPACE();
namespace syntra {
namespace HWY_NAMESPACE {

constexpr int64_t kSums = 256;  // columns that are summed at once

template <typename T>
void SumAlong(int64_t length, int64_t stride, int64_t columns, const OpCall& call, const T* x,
              T* y) {
  const bool reverse = call.attributes.Flag("reverse"), accumulate = Accumulates(call, 0);
  const bool exclusive = call.attributes.Flag("exclusive");
  float sums[kSums] = {};
  for (int64_t n = 0; n < length; ++n) {
    const int64_t row = (reverse ? length - 1 - n : n) * stride;
    VectorLoop(columns, [=, &sums](int64_t j, auto lanes) {
      const FloatVector before = Load(sums + j, lanes);
      const FloatVector sum = hn::Add(before, Load(x + row + j, lanes));
      Store(sum, sums + j, lanes);
      StoreResult(exclusive ? before : sum, y + row + j, lanes, accumulate);
    });
  }
}

void CumulativeSum(const OpCall& call, const KernelArguments& arguments) {
  const Shape& shape = call.inputs[0].shape;
  const auto axis = static_cast<int>(call.attributes.Int("axis"));
  const int64_t length = shape[axis], inner = DenseStrides(shape)[axis];
  const int64_t pieces = DivideUp(inner, kSums), outer = shape.size() / (length * inner);
  WithActivation(call.inputs[0].dtype, [&](auto type) {
    using T = decltype(type);
    const T* x = Input<T>(arguments, 0);
    T* y = Output<T>(arguments, 0);
    const int64_t grain = RowGrain(length * std::min(inner, kSums));
    ParallelFor(outer * pieces, grain, [=, &call](int64_t begin, int64_t end) {
      for (int64_t item = begin; item < end; ++item) {
        const int64_t first = item % pieces * kSums;
        const int64_t at = item / pieces * length * inner + first;
        SumAlong(length, inner, std::min(kSums, inner - first), call, x + at, y + at);
      }
    });
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace syntra
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace syntra {

HWY_EXPORT(CumulativeSum);

std::optional<BoundKernel> cpu_cumulative_sum(const OpCall& call) {
  BoundKernel kernel;
  kernel.accumulates = true;
  kernel.run = [call](const KernelArguments& arguments) {
    HWY_DYNAMIC_DISPATCH(CumulativeSum)(call, arguments);
  };
  return kernel;
}

}  // namespace syntra
#endif
