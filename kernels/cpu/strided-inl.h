// SPDX-License-Identifier: Apache-2.0
// Vectors of elements that lie a stride apart: 1, 0 (one element for all lanes), or any other.
#if defined(SYNTRA_KERNELS_CPU_STRIDED_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SYNTRA_KERNELS_CPU_STRIDED_INL_H_
#undef SYNTRA_KERNELS_CPU_STRIDED_INL_H_
#else
#define SYNTRA_KERNELS_CPU_STRIDED_INL_H_
#endif

#include "kernels/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace syntra {
namespace HWY_NAMESPACE {

inline size_t CountOf(Whole) { return hn::Lanes(FloatTag()); }
inline size_t CountOf(Part part) { return part.count; }

inline float Number(float value) { return value; }
inline float Number(BFloat16 value) { return syntra::ToFloat(value); }

// Elements j, j + 1, .. of those that begin at `from`.
template <typename T, typename Lanes>
HWY_INLINE FloatVector LoadStrided(const T* from, int64_t stride, int64_t j, Lanes lanes) {
  if (stride == 1) return Load(from + j, lanes);
  if (stride == 0) return hn::Set(FloatTag(), Number(*from));
  float numbers[hn::MaxLanes(FloatTag())] = {};
  for (size_t k = 0; k < CountOf(lanes); ++k) {
    numbers[k] = Number(from[(j + static_cast<int64_t>(k)) * stride]);
  }
  return Load(numbers, Whole());
}

template <typename T, typename Lanes>
HWY_INLINE void StoreStrided(FloatVector value, T* to, int64_t stride, int64_t j, Lanes lanes,
                             bool accumulate) {
  if (stride == 1) return StoreResult(value, to + j, lanes, accumulate);
  T numbers[hn::MaxLanes(FloatTag())];
  if (accumulate) value = hn::Add(value, LoadStrided(to, stride, j, lanes));
  Store(value, numbers, Whole());
  for (size_t k = 0; k < CountOf(lanes); ++k) {
    to[(j + static_cast<int64_t>(k)) * stride] = numbers[k];
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace syntra
HWY_AFTER_NAMESPACE();

#endif  // include guard per target
