// SPDX-License-Identifier: Apache-2.0
// affine: y = scale x + shift.
#include "core/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/affine.cc"
#include "hwy/foreach_target.h"
#include "kernels/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace syntra {
namespace HWY_NAMESPACE {

void Affine(const OpCall& call, const KernelArguments& arguments) {
  const auto scale = static_cast<float>(call.attributes.Number("scale"));
  const auto shift = static_cast<float>(call.attributes.Number("shift"));
  const bool accumulate = Accumulates(call, 0);
  WithActivation(call.inputs[0].dtype, [&](auto type) {
    using T = decltype(type);
    const T* x = Input<T>(arguments, 0);
    T* y = Output<T>(arguments, 0);
    ParallelVectorLoop(call.inputs[0].shape.size(), [=](int64_t i, auto lanes) {
      const FloatTag d;
      const FloatVector value =
          hn::MulAdd(hn::Set(d, scale), Load(x + i, lanes), hn::Set(d, shift));
      StoreResult(value, y + i, lanes, accumulate);
    });
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace syntra
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace syntra {

HWY_EXPORT(Affine);

std::optional<BoundKernel> cpu_affine(const OpCall& call) {
  BoundKernel kernel;
  kernel.accumulates = true;
  kernel.run = [call](const KernelArguments& arguments) {
    HWY_DYNAMIC_DISPATCH(Affine)(call, arguments);
  };
  return kernel;
}

}  // namespace syntra
#endif
