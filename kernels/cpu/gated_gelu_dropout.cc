// SPDX-License-Identifier: Apache-2.0
// gated_gelu_dropout: the gated GELU times a random mask, per element or shared by all positions of
// an example. Its gradient masks dy and is then that of gated_gelu.
#include "core/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/gated_gelu_dropout.cc"
#include "hwy/foreach_target.h"
#include "kernels/cpu/gated_gelu-inl.h"
#include "kernels/cpu/noise-inl.h"

HWY_BEFORE_NAMESPACE();
namespace syntra {
namespace HWY_NAMESPACE {

template <typename Call>
void Masked(const Call& call, const TensorMask& mask, const int32_t* keys, std::byte* workspace) {
  const auto piece = [&](int64_t first, int64_t count, const uint32_t* words) {
    VectorLoop(count, [&](int64_t k, auto lanes) {
      call.At(first + k, lanes,
              [&](FloatVector value) { return KeepScaled(value, words + k, mask.keep); });
    });
  };
  ForEachMaskedPiece(mask, keys, workspace, piece);
}

void GatedGeluDropout(const OpCall& call, const TensorMask& mask,
                      const KernelArguments& arguments) {
  WithActivation(call.inputs[0].dtype, [&](auto type) {
    Masked(ForwardOf<decltype(type)>(call, arguments), mask, Input<int32_t>(arguments, 2),
           arguments.workspace);
  });
}

void GatedGeluDropoutGrad(const OpCall& call, const TensorMask& mask,
                          const KernelArguments& arguments) {
  WithActivation(call.inputs[0].dtype, [&](auto type) {
    Masked(GradientOf<decltype(type)>(call, arguments), mask, Input<int32_t>(arguments, 3),
           arguments.workspace);
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace syntra
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace syntra {

HWY_EXPORT(GatedGeluDropout);
HWY_EXPORT(GatedGeluDropoutGrad);

// `run` computes the call with its mask.
template <typename Run>
BoundKernel BindMasked(const OpCall& call, const Run& run) {
  const TensorMask mask = TensorMask::Of(call.attributes, call.inputs[0].shape);
  BoundKernel kernel;
  kernel.accumulates = true;
  kernel.workspace_bytes = SharedNoiseBytes(mask);
  kernel.run = [=](const KernelArguments& arguments) { run(call, mask, arguments); };
  return kernel;
}

std::optional<BoundKernel> cpu_gated_gelu_dropout(const OpCall& call) {
  return BindMasked(call, [](const auto&... all) {
    HWY_DYNAMIC_DISPATCH(GatedGeluDropout)(all...);
  });
}

std::optional<BoundKernel> cpu_gated_gelu_dropout_grad(const OpCall& call) {
  return BindMasked(call, [](const auto&... all) {
    HWY_DYNAMIC_DISPATCH(GatedGeluDropoutGrad)(all...);
  });
}

}  // namespace syntra
#endif
