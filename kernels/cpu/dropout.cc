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

struct DropoutCall {
  TensorType type;
  Keep keep;
  uint64_t site;
  bool per_element;
  int64_t group;
  bool accumulate;
};

template <typename T>
void DropoutRows(const DropoutCall& call, const T* x, const int32_t* keys, T* y,
                 const uint32_t* shared) {
  const int64_t positions = call.type.shape[1], width = call.type.shape[2];
  const int64_t draws = width / call.group, stride = SharedNoiseStride(draws);
  ParallelFor(call.type.shape[0] * positions, RowGrain(width), [&](int64_t begin, int64_t end) {
    NoiseWords noise;
    for (int64_t row = begin; row < end; ++row) {
      const int64_t b = row / positions, t = row % positions;
      for (int64_t i = 0; i < draws; i += NoiseWords::kBlock) {
        const int64_t count = std::min(NoiseWords::kBlock, draws - i);
        const uint32_t* words =
            call.per_element ? noise.Fill(RowKey(&keys[2 * b]), call.site, t * draws + i, count)
                             : shared + b * stride + i;
        const int64_t offset = row * width + i * call.group;
        MaskGroups(x + offset, y + offset, count, call.group, words, call.keep, call.accumulate);
      }
    }
  });
}

void Dropout(const OpCall& call, const KernelArguments& arguments) {
  const DropoutCall dropout{call.inputs[0],
                            Keep::AtRate(call.attributes.Number("rate")),
                            static_cast<uint64_t>(call.attributes.Int("site")),
                            call.attributes.Flag("per_element"),
                            call.attributes.Int("group"),
                            Accumulates(call, 0)};
  const auto* keys = Input<int32_t>(arguments, 1);
  auto* shared = reinterpret_cast<uint32_t*>(arguments.workspace);
  if (!dropout.per_element) {
    FillSharedNoise(keys, dropout.site, dropout.type.shape[0],
                    dropout.type.shape[2] / dropout.group, shared);
  }
  WithActivation(dropout.type.dtype, [&](auto type) {
    using T = decltype(type);
    DropoutRows(dropout, Input<T>(arguments, 0), keys, Output<T>(arguments, 0), shared);
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
  const int64_t group = call.attributes.Int("group");
  if (!IsActivation(x) || x.shape.rank() != 3 || x.shape[2] % group != 0 ||
      !call.outputs[0].present()) {
    return std::nullopt;
  }
  if (call.attributes.Number("rate") == 0.0) return cpu_copy(call);  // keys may be absent
  BoundKernel kernel;
  kernel.accumulates = true;
  if (!call.attributes.Flag("per_element")) {
    kernel.workspace_bytes = SharedNoiseBytes(x.shape[0], x.shape[2] / group);
  }
  kernel.run = [call](const KernelArguments& arguments) {
    HWY_DYNAMIC_DISPATCH(Dropout)(call, arguments);
  };
  return kernel;
}

}  // namespace syntra
#endif
