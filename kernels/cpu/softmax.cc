// SPDX-License-Identifier: Apache-2.0
// softmax over the last axis and its gradient, dx = y (dy - sum of y dy), a row at a time.
#include "core/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/softmax.cc"
#include "hwy/foreach_target.h"
#include "kernels/cpu/exp-inl.h"
#include "kernels/cpu/reduce-inl.h"

HWY_BEFORE_NAMESPACE();
namespace syntra {
namespace HWY_NAMESPACE {

template <typename T>
void SoftmaxRow(const T* x, T* y, int64_t width, bool accumulate) {
  const FloatVector largest = hn::Set(FloatTag(), LargestOf(x, width));
  const auto power = [=](int64_t j, auto lanes) {
    return FastExp(hn::Sub(Load(x + j, lanes), largest));
  };
  FloatVector sum = hn::Zero(FloatTag());
  VectorLoop(width,
             [&](int64_t j, auto lanes) { sum = hn::Add(sum, Valid(power(j, lanes), lanes)); });
  const FloatVector scale = hn::Set(FloatTag(), 1.0f / SumLanes(sum));
  VectorLoop(width, [=](int64_t j, auto lanes) {
    StoreResult(hn::Mul(power(j, lanes), scale), y + j, lanes, accumulate);
  });
}

template <typename T>
void SoftmaxGradRow(const T* y, const T* dy, T* dx, int64_t width, bool accumulate) {
  const FloatVector mean = hn::Set(FloatTag(), Dot(y, dy, width));
  VectorLoop(width, [=](int64_t j, auto lanes) {
    const FloatVector slope = hn::Sub(Load(dy + j, lanes), mean);
    StoreResult(hn::Mul(Load(y + j, lanes), slope), dx + j, lanes, accumulate);
  });
}

void Softmax(const TensorType& type, bool accumulate, const KernelArguments& arguments) {
  const int64_t width = type.shape[-1];
  WithActivation(type.dtype, [&](auto element) {
    using T = decltype(element);
    const T* x = Input<T>(arguments, 0);
    T* y = Output<T>(arguments, 0);
    ParallelFor(type.shape.rows(), RowGrain(width), [=](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        SoftmaxRow(x + row * width, y + row * width, width, accumulate);
      }
    });
  });
}

void SoftmaxGrad(const TensorType& type, bool accumulate, const KernelArguments& arguments) {
  const int64_t width = type.shape[-1];
  WithActivation(type.dtype, [&](auto element) {
    using T = decltype(element);
    const T *y = Input<T>(arguments, 0), *dy = Input<T>(arguments, 1);
    T* dx = Output<T>(arguments, 0);
    ParallelFor(type.shape.rows(), RowGrain(width), [=](int64_t begin, int64_t end) {
      for (int64_t i = begin * width; i < end * width; i += width) {
        SoftmaxGradRow(y + i, dy + i, dx + i, width, accumulate);
      }
    });
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace syntra
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace syntra {

HWY_EXPORT(Softmax);
HWY_EXPORT(SoftmaxGrad);

std::optional<BoundKernel> cpu_softmax(const OpCall& call) {
  const TensorType x = call.inputs[0];
  BoundKernel kernel;
  kernel.accumulates = true;
  kernel.run = [x, accumulate = Accumulates(call, 0)](const KernelArguments& arguments) {
    HWY_DYNAMIC_DISPATCH(Softmax)(x, accumulate, arguments);
  };
  return kernel;
}

std::optional<BoundKernel> cpu_softmax_grad(const OpCall& call) {
  const TensorType y = call.inputs[0];
  BoundKernel kernel;
  kernel.accumulates = true;
  kernel.run = [y, accumulate = Accumulates(call, 0)](const KernelArguments& arguments) {
    HWY_DYNAMIC_DISPATCH(SoftmaxGrad)(y, accumulate, arguments);
  };
  return kernel;
}

}  // namespace syntra
#endif
