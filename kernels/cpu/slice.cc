// SPDX-License-Identifier: Apache-2.0
// slice: the first `length` entries along an axis. Its gradient is zero for the other entries.
#include "core/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/slice.cc"
#include "hwy/foreach_target.h"
#include "kernels/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace syntra {
namespace HWY_NAMESPACE {

// Copies the first `kept` elements of each row of `from_width` elements to rows of `to_width`
// elements. The remaining elements of the target rows become zero.
template <typename T>
void CopyRows(const T* from, int64_t from_width, T* to, int64_t to_width, int64_t rows,
              bool accumulate) {
  const int64_t kept = std::min(from_width, to_width);
  ParallelFor(rows, RowGrain(to_width), [=](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const T* source = from + row * from_width;
      T* target = to + row * to_width;
      VectorLoop(kept, [=](int64_t i, auto lanes) {
        StoreResult(Load(source + i, lanes), target + i, lanes, accumulate);
      });
      if (!accumulate) std::memset(target + kept, 0, (to_width - kept) * sizeof(T));
    }
  });
}

void SliceRows(const TensorType& from, const TensorType& to, int axis, bool accumulate,
               const KernelArguments& arguments) {
  int64_t inner = 1, rows = 1;
  for (int i = 0; i < axis; ++i) rows *= from.shape[i];
  for (int i = axis + 1; i < from.shape.rank(); ++i) inner *= from.shape[i];
  WithActivation(from.dtype, [&](auto type) {
    using T = decltype(type);
    CopyRows(Input<T>(arguments, 0), from.shape[axis] * inner, Output<T>(arguments, 0),
             to.shape[axis] * inner, rows, accumulate);
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace syntra
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace syntra {

HWY_EXPORT(SliceRows);

std::optional<BoundKernel> cpu_slice(const OpCall& call) {
  const TensorType from = call.inputs[0], to = call.outputs[0];
  if (!IsActivation(from) || to.dtype != from.dtype) return std::nullopt;
  const auto given = static_cast<int>(call.attributes.Int("axis"));
  const int axis = given < 0 ? given + from.shape.rank() : given;
  BoundKernel kernel;
  kernel.accumulates = true;
  kernel.run = [from, to, axis,
                accumulate = Accumulates(call, 0)](const KernelArguments& arguments) {
    HWY_DYNAMIC_DISPATCH(SliceRows)(from, to, axis, accumulate, arguments);
  };
  return kernel;
}

std::optional<BoundKernel> cpu_slice_grad(const OpCall& call) { return cpu_slice(call); }

}  // namespace syntra
#endif
