// SPDX-License-Identifier: Apache-2.0
// dropout: x times a random mask, per element or shared by all positions of an example; `group`
// consecutive elements of a position may share one draw. It is its own gradient.
#include "core/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/dropout.cc"
#include "hwy/foreach_target.h"
#include "kernels/cpu/copy.h"
#include "kernels/cpu/noise-inl.h"

HWY_BEFORE_NAMESPACE();
namespace syntra {
namespace HWY_NAMESPACE {

// y = x times the mask. Each of `words` decides about `group` elements.
template <typename T>
HWY_INLINE void MaskGroups(const T* x, T* y, int64_t draws, int64_t group, const uint32_t* words,
                           const Keep& keep, bool accumulate) {
  if (group == 1) {
    VectorLoop(draws, [=](int64_t i, auto lanes) {
      StoreResult(KeepScaled(Load(x + i, lanes), words + i, keep), y + i, lanes, accumulate);
    });
    return;
  }
  for (int64_t draw = 0; draw < draws; ++draw, x += group, y += group) {
    const bool kept = words[draw] >= keep.threshold;
    const FloatVector scale = hn::Set(FloatTag(), keep.scale);
    VectorLoop(group, [=](int64_t i, auto lanes) {
      const FloatVector value = kept ? hn::Mul(Load(x + i, lanes), scale) : hn::Zero(FloatTag());
      StoreResult(value, y + i, lanes, accumulate);
    });
  }
}

void Dropout(const TensorMask& mask, DType dtype, bool accumulate,
             const KernelArguments& arguments) {
  WithActivation(dtype, [&](auto type) {
    using T = decltype(type);
    const auto* x = Input<T>(arguments, 0);
    auto* y = Output<T>(arguments, 0);
    ForEachMaskedPiece(mask, Input<int32_t>(arguments, 1), arguments.workspace,
                       [&](int64_t i, int64_t draws, const uint32_t* words) {
                         MaskGroups(x + i, y + i, draws, mask.group, words, mask.keep, accumulate);
                       });
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace syntra
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace syntra {

HWY_EXPORT(Dropout);

std::optional<BoundKernel> cpu_dropout(const OpCall& call) {
  const TensorType& x = call.inputs[0];
  if (call.attributes.Number("rate") == 0.0) return cpu_copy(call);  // keys may be absent
  BoundKernel kernel;
  kernel.accumulates = true;
  const TensorMask mask = TensorMask::Of(call.attributes, x.shape, call.attributes.Int("group"));
  kernel.workspace_bytes = SharedNoiseBytes(mask);
  kernel.run = [mask, dtype = x.dtype,
                accumulate = Accumulates(call, 0)](const KernelArguments& arguments) {
    HWY_DYNAMIC_DISPATCH(Dropout)(mask, dtype, accumulate, arguments);
  };
  return kernel;
}

}  // namespace syntra
#endif
