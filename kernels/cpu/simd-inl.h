// SPDX-License-Identifier: Apache-2.0
// SIMD vectors of floats for f32 and bf16 memory: loads that convert to f32, stores that round to
// nearest even, and loops with a partial last vector. Included once per instruction set (Highway's
// foreach_target).
#if defined(SYNTRA_KERNELS_CPU_SIMD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SYNTRA_KERNELS_CPU_SIMD_INL_H_
#undef SYNTRA_KERNELS_CPU_SIMD_INL_H_
#else
#define SYNTRA_KERNELS_CPU_SIMD_INL_H_
#endif

#include <cstring>

#include "core/thread.h"
#include "hwy/highway.h"
#include "kernels/bfloat16.h"
#include "kernels/cpu/grain.h"
#include "kernels/cpu/processor.h"
#include "kernels/operands.h"

HWY_BEFORE_NAMESPACE();
namespace syntra {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using FloatTag = hn::ScalableTag<float>;
using FloatVector = hn::Vec<FloatTag>;

// Which lanes of a vector an iteration of a loop uses: all, or the first `count`.
struct Whole {};
struct Part {
  size_t count;
};

HWY_INLINE FloatVector Load(const float* from, Whole) { return hn::LoadU(FloatTag(), from); }

// The bits of bf16s, as many as a FloatVector has lanes.
using HalfWords = hn::Vec<hn::Rebind<uint16_t, FloatTag>>;

HWY_INLINE FloatVector ToFloat(HalfWords bits) {
  const auto words = hn::PromoteTo(hn::RebindToUnsigned<FloatTag>(), bits);
  return hn::BitCast(FloatTag(), hn::ShiftLeft<16>(words));
}

HWY_INLINE HalfWords LoadHalfWords(const BFloat16* from, Whole) {
  const hn::Rebind<uint16_t, FloatTag> d16;
  return hn::LoadU(d16, reinterpret_cast<const uint16_t*>(from));
}

#if SYNTRA_AVX512
HWY_INLINE FloatVector Load(const float* from, Part part) {
  return hn::MaskedLoad(hn::FirstN(FloatTag(), part.count), FloatTag(), from);
}
HWY_INLINE HalfWords LoadHalfWords(const BFloat16* from, Part part) {
  const hn::Rebind<uint16_t, FloatTag> d16;
  const auto* bits = reinterpret_cast<const uint16_t*>(from);
  return hn::MaskedLoad(hn::FirstN(d16, part.count), d16, bits);
}
#else
HWY_INLINE FloatVector Load(const float* from, Part part) {
  float lanes[hn::MaxLanes(FloatTag())] = {};
  std::memcpy(lanes, from, part.count * sizeof(float));
  return Load(lanes, Whole());
}
HWY_INLINE HalfWords LoadHalfWords(const BFloat16* from, Part part) {
  BFloat16 lanes[hn::MaxLanes(FloatTag())] = {};
  std::memcpy(lanes, from, part.count * sizeof(BFloat16));
  return LoadHalfWords(lanes, Whole());
}
#endif

template <typename Lanes>
HWY_INLINE FloatVector Load(const BFloat16* from, Lanes lanes) {
  return ToFloat(LoadHalfWords(from, lanes));
}

HWY_INLINE void Store(FloatVector value, float* to, Whole) { hn::StoreU(value, FloatTag(), to); }

// Rounds to the nearest bf16, ties to even. NaN stays NaN.
HWY_INLINE HalfWords RoundToNearest(FloatVector value) {
  const hn::RebindToUnsigned<FloatTag> d32;
  const auto bits = hn::BitCast(d32, value);
  const auto high = hn::ShiftRight<16>(bits);
  const auto odd = hn::And(high, hn::Set(d32, 1));
  const auto rounded = hn::ShiftRight<16>(hn::Add(hn::Add(bits, hn::Set(d32, 0x7FFF)), odd));
  const auto not_a_number = hn::RebindMask(d32, hn::Ne(value, value));
  const auto all = hn::IfThenElse(not_a_number, hn::Or(high, hn::Set(d32, 0x40)), rounded);
  return hn::TruncateTo(hn::Rebind<uint16_t, FloatTag>(), all);
}

// Rounds to bf16 with the processor's instruction, if it has one (Highway 1.0 does not offer it).
// The instruction treats subnormals as zero, as products of bf16 do.
HWY_INLINE HalfWords ToBFloat16(FloatVector value) {
#if SYNTRA_AVX512
  if (kProcessor.avx512_bf16) {
    HalfWords rounded;
    asm("vcvtneps2bf16 %1, %0" : "=v"(rounded.raw) : "v"(value.raw));
    return rounded;
  }
#endif
  return RoundToNearest(value);
}

HWY_INLINE void Store(FloatVector value, BFloat16* to, Whole) {
  const hn::Rebind<uint16_t, FloatTag> d16;
  hn::StoreU(ToBFloat16(value), d16, reinterpret_cast<uint16_t*>(to));
}

#if SYNTRA_AVX512
HWY_INLINE void Store(FloatVector value, float* to, Part part) {
  hn::BlendedStore(value, hn::FirstN(FloatTag(), part.count), FloatTag(), to);
}
HWY_INLINE void Store(FloatVector value, BFloat16* to, Part part) {
  const hn::Rebind<uint16_t, FloatTag> d16;
  auto* bits = reinterpret_cast<uint16_t*>(to);
  hn::BlendedStore(ToBFloat16(value), hn::FirstN(d16, part.count), d16, bits);
}
#else
template <typename T>
HWY_INLINE void Store(FloatVector value, T* to, Part part) {
  T lanes[hn::MaxLanes(FloatTag())];
  Store(value, lanes, Whole());
  std::memcpy(to, lanes, part.count * sizeof(T));
}
#endif

// Stores the value, or adds it to the value in memory.
template <typename T, typename Lanes>
HWY_INLINE void StoreResult(FloatVector value, T* to, Lanes lanes, bool accumulate) {
  if (accumulate) value = hn::Add(value, Load(to, lanes));
  Store(value, to, lanes);
}

// The value rounded to the precision of the first argument's type.
HWY_INLINE FloatVector RoundAs(float, FloatVector value) { return value; }
HWY_INLINE FloatVector RoundAs(BFloat16, FloatVector value) { return ToFloat(ToBFloat16(value)); }

// Calls body(i, lanes) for i = 0, n, 2n, ... `lanes` is Whole, or Part for the last elements.
// Partial loads set the other lanes to zero.
template <typename Body>
HWY_INLINE void VectorLoop(int64_t count, const Body& body) {
  const int64_t n = static_cast<int64_t>(hn::Lanes(FloatTag()));
  int64_t i = 0;
  for (; i + n <= count; i += n) body(i, Whole());
  if (i < count) body(i, Part{static_cast<size_t>(count - i)});
}

// VectorLoop over [0, count), split among threads.
template <typename Body>
HWY_INLINE void ParallelVectorLoop(int64_t count, const Body& body) {
  ParallelFor(count, kGrain, [&](int64_t begin, int64_t end) {
    VectorLoop(end - begin, [&](int64_t i, auto lanes) { body(begin + i, lanes); });
  });
}

HWY_INLINE float SumLanes(FloatVector value) {
  return hn::GetLane(hn::SumOfLanes(FloatTag(), value));
}

// Sets the unused lanes of a partial vector to zero.
HWY_INLINE FloatVector Valid(FloatVector value, Whole) { return value; }
HWY_INLINE FloatVector Valid(FloatVector value, Part part) {
  return hn::IfThenElseZero(hn::FirstN(FloatTag(), part.count), value);
}

}  // namespace HWY_NAMESPACE
}  // namespace syntra
HWY_AFTER_NAMESPACE();

#endif  // include guard per target
