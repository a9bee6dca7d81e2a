// SPDX-License-Identifier: Apache-2.0
// gated_gelu and its gradient, element by element.
#include "core/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/gated_gelu.cc"
#include "hwy/foreach_target.h"
#include "kernels/cpu/gated_gelu-inl.h"

HWY_BEFORE_NAMESPACE();
namespace syntra {
namespace HWY_NAMESPACE {

template <typename Call>
void Unmasked(const Call& call, int64_t count) {
  ParallelVectorLoop(count, [=](int64_t i, auto lanes) {
    call.At(i, lanes, [](FloatVector value) { return value; });
  });
}

void GatedGelu(const OpCall& call, const KernelArguments& arguments) {
  WithActivation(call.inputs[0].dtype, [&](auto type) {
    Unmasked(ForwardOf<decltype(type)>(call, arguments), call.inputs[0].shape.size());
  });
}

void GatedGeluGrad(const OpCall& call, const KernelArguments& arguments) {
  WithActivation(call.inputs[0].dtype, [&](auto type) {
    Unmasked(GradientOf<decltype(type)>(call, arguments), call.inputs[0].shape.size());
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace syntra
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace syntra {

HWY_EXPORT(GatedGelu);
HWY_EXPORT(GatedGeluGrad);

std::optional<BoundKernel> cpu_gated_gelu(const OpCall& call) {
  BoundKernel kernel;
  kernel.accumulates = true;
  kernel.run = [call](const KernelArguments& arguments) {
    HWY_DYNAMIC_DISPATCH(GatedGelu)(call, arguments);
  };
  return kernel;
}

std::optional<BoundKernel> cpu_gated_gelu_grad(const OpCall& call) {
  BoundKernel kernel;
  kernel.accumulates = true;
  kernel.run = [call](const KernelArguments& arguments) {
    HWY_DYNAMIC_DISPATCH(GatedGeluGrad)(call, arguments);
  };
  return kernel;
}

}  // namespace syntra
#endif
