// SPDX-License-Identifier: Apache-2.0
// reduce_max over the last axis: the largest element and its first index; the gradient goes there.
#include "core/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/reduce_max.cc"
#include "hwy/foreach_target.h"
#include "kernels/cpu/reduce-inl.h"
#include "kernels/cpu/strided-inl.h"

HWY_BEFORE_NAMESPACE();
namespace syntra {
namespace HWY_NAMESPACE {

void ReduceMax(const TensorType& type, const KernelArguments& arguments) {
  const int64_t width = type.shape[-1];
  auto* indices = Output<int32_t>(arguments, 1);
  WithActivation(type.dtype, [&](auto element) {
    using T = decltype(element);
    const T* x = Input<T>(arguments, 0);
    T* y = Output<T>(arguments, 0);
    ParallelFor(type.shape.rows(), RowGrain(width), [=](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const T* from = x + row * width;
        const float largest = LargestOf(from, width);
        int64_t first = 0;
        while (first < width && Number(from[first]) != largest) ++first;
        if (first == width) first = 0;  // all are NaN
        if (y != nullptr) y[row] = from[first];
        if (indices != nullptr) indices[row] = static_cast<int32_t>(first);
      }
    });
  });
}

void ReduceMaxGrad(const TensorType& type, bool accumulate, const KernelArguments& arguments) {
  const int64_t width = type.shape[-1];
  const auto* indices = Input<int32_t>(arguments, 0);
  WithActivation(type.dtype, [&](auto element) {
    using T = decltype(element);
    const T* dy = Input<T>(arguments, 1);
    T* dx = Output<T>(arguments, 0);
    ParallelFor(type.shape.rows(), RowGrain(width), [=](int64_t begin, int64_t end) {
      if (!accumulate) std::fill(dx + begin * width, dx + end * width, T{});
      for (int64_t row = begin; row < end; ++row) {
        StoreResult(Load(dy + row, Part{1}), dx + row * width + indices[row], Part{1}, accumulate);
      }
    });
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace syntra
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace syntra {

HWY_EXPORT(ReduceMax);
HWY_EXPORT(ReduceMaxGrad);

std::optional<BoundKernel> cpu_reduce_max(const OpCall& call) {
  const TensorType x = call.inputs[0];
  BoundKernel kernel;
  kernel.run = [x](const KernelArguments& arguments) {
    HWY_DYNAMIC_DISPATCH(ReduceMax)(x, arguments);
  };
  return kernel;
}

std::optional<BoundKernel> cpu_reduce_max_grad(const OpCall& call) {
  const TensorType dx = call.outputs[0];
  BoundKernel kernel;
  kernel.accumulates = true;
  kernel.run = [dx, accumulate = Accumulates(call, 0)](const KernelArguments& arguments) {
    HWY_DYNAMIC_DISPATCH(ReduceMaxGrad)(dx, accumulate, arguments);
  };
  return kernel;
}

}  // namespace syntra
#endif
