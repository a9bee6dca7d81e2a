// SPDX-License-Identifier: Apache-2.0
// relu_dropout: max(x, 0) times a random mask, per element or shared by all positions of an
// example. Its gradient needs the result alone.
#include "core/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/relu_dropout.cc"
#include "hwy/foreach_target.h"
#include "kernels/cpu/noise-inl.h"

HWY_BEFORE_NAMESPACE();
namespace syntra {
namespace HWY_NAMESPACE {

void ReluDropout(const TensorMask& mask, DType dtype, bool accumulate,
                 const KernelArguments& arguments) {
  WithActivation(dtype, [&](auto type) {
    using T = decltype(type);
    const auto* x = Input<T>(arguments, 0);
    auto* y = Output<T>(arguments, 0);
    const auto piece = [&](int64_t first, int64_t count, const uint32_t* words) {
      VectorLoop(count, [=, &mask](int64_t k, auto lanes) {
        const FloatVector value = Load(x + first + k, lanes);
        const auto negative = hn::Lt(value, hn::Zero(FloatTag()));  // NaN is not
        const FloatVector rectified = hn::IfThenZeroElse(negative, value);
        StoreResult(KeepScaled(rectified, words + k, mask.keep), y + first + k, lanes, accumulate);
      });
    };
    ForEachMaskedPiece(mask, Input<int32_t>(arguments, 1), arguments.workspace, piece);
  });
}

void ReluDropoutGrad(const TensorType& dx, float scale, bool accumulate,
                     const KernelArguments& arguments) {
  WithActivation(dx.dtype, [&](auto type) {
    using T = decltype(type);
    const auto *y = Input<T>(arguments, 0), *dy = Input<T>(arguments, 1);
    auto* to = Output<T>(arguments, 0);
    ParallelVectorLoop(dx.shape.size(), [=](int64_t i, auto lanes) {
      const FloatVector scaled = hn::Mul(Load(dy + i, lanes), hn::Set(FloatTag(), scale));
      const auto passed = hn::Gt(Load(y + i, lanes), hn::Zero(FloatTag()));
      StoreResult(hn::IfThenElseZero(passed, scaled), to + i, lanes, accumulate);
    });
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace syntra
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace syntra {

HWY_EXPORT(ReluDropout);
HWY_EXPORT(ReluDropoutGrad);

std::optional<BoundKernel> cpu_relu_dropout(const OpCall& call) {
  const TensorType& x = call.inputs[0];
  const TensorMask mask = TensorMask::Of(call.attributes, x.shape);
  BoundKernel kernel;
  kernel.accumulates = true;
  kernel.workspace_bytes = SharedNoiseBytes(mask);
  kernel.run = [mask, dtype = x.dtype,
                accumulate = Accumulates(call, 0)](const KernelArguments& arguments) {
    HWY_DYNAMIC_DISPATCH(ReluDropout)(mask, dtype, accumulate, arguments);
  };
  return kernel;
}

std::optional<BoundKernel> cpu_relu_dropout_grad(const OpCall& call) {
  BoundKernel kernel;
  kernel.accumulates = true;
  kernel.run = [dx = call.inputs[0], scale = Keep::AtRate(call.attributes.Number("rate")).scale,
                accumulate = Accumulates(call, 0)](const KernelArguments& arguments) {
    HWY_DYNAMIC_DISPATCH(ReluDropoutGrad)(dx, scale, accumulate, arguments);
  };
  return kernel;
}

}  // namespace syntra
#endif
