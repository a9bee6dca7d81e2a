// SPDX-License-Identifier: Apache-2.0
// copy: y = x, between f32 and bf16 in either direction; reshape, as elements keep their order.
#include "core/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/copy.cc"
#include "hwy/foreach_target.h"
#include "kernels/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace syntra {
namespace HWY_NAMESPACE {

void Copy(DType from, DType to, int64_t count, bool accumulate, const KernelArguments& arguments) {
  WithActivation(from, [&](auto from_type) {
    WithActivation(to, [&](auto to_type) {
      const auto* x = Input<decltype(from_type)>(arguments, 0);
      auto* y = Output<decltype(to_type)>(arguments, 0);
      ParallelVectorLoop(count, [=](int64_t i, auto lanes) {
        StoreResult(Load(x + i, lanes), y + i, lanes, accumulate);
      });
    });
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace syntra
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace syntra {

HWY_EXPORT(Copy);

std::optional<BoundKernel> cpu_copy(const OpCall& call) {
  BoundKernel kernel;
  kernel.accumulates = true;
  kernel.run = [from = call.inputs[0].dtype, to = call.outputs[0].dtype,
                count = call.inputs[0].shape.size(),
                accumulate = Accumulates(call, 0)](const KernelArguments& arguments) {
    HWY_DYNAMIC_DISPATCH(Copy)(from, to, count, accumulate, arguments);
  };
  return kernel;
}

std::optional<BoundKernel> cpu_reshape(const OpCall& call) { return cpu_copy(call); }

}  // namespace syntra
#endif
