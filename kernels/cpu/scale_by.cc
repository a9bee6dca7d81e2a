// SPDX-License-Identifier: Apache-2.0
// scale_by: x * weights[index]. Its gradient: dx = dy * weights[index], dweights[index] = sum of x
// * dy.
#include "core/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/scale_by.cc"
#include "hwy/foreach_target.h"
#include "kernels/cpu/reduce-inl.h"

HWY_BEFORE_NAMESPACE();
namespace syntra {
namespace HWY_NAMESPACE {

void ScaleBy(const OpCall& call, const KernelArguments& arguments) {
  const float weight = Input<float>(arguments, 1)[call.attributes.Int("index")];
  const bool accumulate = Accumulates(call, 0);
  WithActivation(call.inputs[0].dtype, [&](auto type) {
    using T = decltype(type);
    const T* x = Input<T>(arguments, 0);
    T* y = Output<T>(arguments, 0);
    ParallelVectorLoop(call.inputs[0].shape.size(), [=](int64_t i, auto lanes) {
      const FloatVector scale = hn::Set(FloatTag(), weight);
      StoreResult(hn::Mul(Load(x + i, lanes), scale), y + i, lanes, accumulate);
    });
  });
}

void ScaleByGrad(const OpCall& call, const KernelArguments& arguments) {
  const int64_t index = call.attributes.Int("index"), count = call.inputs[0].shape.size();
  const float weight = Input<float>(arguments, 1)[index];
  WithActivation(call.inputs[0].dtype, [&](auto type) {
    using T = decltype(type);
    const T *x = Input<T>(arguments, 0), *dy = Input<T>(arguments, 2);
    if (T* dx = Output<T>(arguments, 0)) {
      const bool accumulate = Accumulates(call, 0);
      ParallelVectorLoop(count, [=](int64_t i, auto lanes) {
        const FloatVector scale = hn::Set(FloatTag(), weight);
        StoreResult(hn::Mul(Load(dy + i, lanes), scale), dx + i, lanes, accumulate);
      });
    }
    if (float* dweights = Output<float>(arguments, 1)) {
      auto* partial = reinterpret_cast<double*>(arguments.workspace);
      const auto sum = static_cast<float>(ParallelDotInDouble(x, dy, count, partial));
      if (!Accumulates(call, 1)) std::fill_n(dweights, call.outputs[1].shape.size(), 0.0f);
      dweights[index] += sum;
    }
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace syntra
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace syntra {

HWY_EXPORT(ScaleBy);
HWY_EXPORT(ScaleByGrad);

std::optional<BoundKernel> cpu_scale_by(const OpCall& call) {
  if (!IsActivation(call.inputs[0]) || !IsF32(call.inputs[1]) || !call.outputs[0].present()) {
    return std::nullopt;
  }
  BoundKernel kernel;
  kernel.accumulates = true;
  kernel.run = [call](const KernelArguments& arguments) {
    HWY_DYNAMIC_DISPATCH(ScaleBy)(call, arguments);
  };
  return kernel;
}

std::optional<BoundKernel> cpu_scale_by_grad(const OpCall& call) {
  const TensorType& x = call.inputs[0];
  if (!IsActivation(x) || !IsF32(call.inputs[1]) || call.inputs[2].dtype != x.dtype) {
    return std::nullopt;
  }
  BoundKernel kernel;
  kernel.accumulates = true;
  kernel.workspace_bytes = ElementBlocks(x.shape.size()) * sizeof(double);
  kernel.run = [call](const KernelArguments& arguments) {
    HWY_DYNAMIC_DISPATCH(ScaleByGrad)(call, arguments);
  };
  return kernel;
}

}  // namespace syntra
#endif
