// Vectors of floats over f32 and bf16 memory: loads that promote, stores that round to nearest
// even, loops with partial last vectors. Included once per instruction set (Highway's
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
#include "kernels/cpu/operands.h"

HWY_BEFORE_NAMESPACE();
namespace syntra {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using FloatTag = hn::ScalableTag<float>;
using FloatVector = hn::Vec<FloatTag>;

// Elements that one thread takes at least: below this, waking another costs more than it saves.
inline constexpr int64_t kGrain = 16384;

// How much of a vector a step of a loop covers.
struct Whole {};
struct Part {
  size_t count;
};

HWY_INLINE FloatVector Load(const float* from, Whole) { return hn::LoadU(FloatTag(), from); }

HWY_INLINE FloatVector Load(const BFloat16* from, Whole) {
  const FloatTag d;
  const hn::RebindToUnsigned<FloatTag> d32;
  const hn::Rebind<uint16_t, FloatTag> d16;
  const auto bits = hn::LoadU(d16, reinterpret_cast<const uint16_t*>(from));
  return hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(d32, bits)));
}

template <typename T>
HWY_INLINE FloatVector Load(const T* from, Part part) {
  T lanes[hn::MaxLanes(FloatTag())] = {};
  std::memcpy(lanes, from, part.count * sizeof(T));
  return Load(lanes, Whole());
}

HWY_INLINE void Store(FloatVector value, float* to, Whole) { hn::StoreU(value, FloatTag(), to); }

// The bits of the nearest bf16 in the low half of each lane; NaN stays NaN.
HWY_INLINE hn::Vec<hn::RebindToUnsigned<FloatTag>> BFloat16Bits(FloatVector value) {
  const hn::RebindToUnsigned<FloatTag> d32;
  const auto bits = hn::BitCast(d32, value);
  const auto high = hn::ShiftRight<16>(bits);
  const auto odd = hn::And(high, hn::Set(d32, 1));
  const auto rounded = hn::ShiftRight<16>(hn::Add(hn::Add(bits, hn::Set(d32, 0x7FFF)), odd));
  const auto not_a_number = hn::RebindMask(d32, hn::Ne(value, value));
  return hn::IfThenElse(not_a_number, hn::Or(high, hn::Set(d32, 0x40)), rounded);
}

HWY_INLINE void Store(FloatVector value, BFloat16* to, Whole) {
  const hn::Rebind<uint16_t, FloatTag> d16;
  hn::StoreU(hn::TruncateTo(d16, BFloat16Bits(value)), d16, reinterpret_cast<uint16_t*>(to));
}

template <typename T>
HWY_INLINE void Store(FloatVector value, T* to, Part part) {
  T lanes[hn::MaxLanes(FloatTag())];
  Store(value, lanes, Whole());
  std::memcpy(to, lanes, part.count * sizeof(T));
}

// Stores the value, or adds it to what is there.
template <typename T, typename Lanes>
HWY_INLINE void StoreResult(FloatVector value, T* to, Lanes lanes, bool accumulate) {
  if (accumulate) value = hn::Add(value, Load(to, lanes));
  Store(value, to, lanes);
}

// The value as it will read back from memory of type T.
HWY_INLINE FloatVector RoundAs(float, FloatVector value) { return value; }
HWY_INLINE FloatVector RoundAs(BFloat16, FloatVector value) {
  return hn::BitCast(FloatTag(), hn::ShiftLeft<16>(BFloat16Bits(value)));
}

// Calls body(i, lanes) for i = 0, n, 2n, ..; lanes is Whole, and Part for the rest. Partial loads
// read zeros beyond the end.
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

// Rows of `width` elements that a thread takes at least.
inline int64_t RowGrain(int64_t width) {
  return std::max<int64_t>(1, kGrain / std::max<int64_t>(1, width));
}

HWY_INLINE float SumLanes(FloatVector value) {
  return hn::GetLane(hn::SumOfLanes(FloatTag(), value));
}

// Lanes of a partial vector beyond the end replaced by zero.
HWY_INLINE FloatVector Valid(FloatVector value, Whole) { return value; }
HWY_INLINE FloatVector Valid(FloatVector value, Part part) {
  return hn::IfThenElseZero(hn::FirstN(FloatTag(), part.count), value);
}

}  // namespace HWY_NAMESPACE
}  // namespace syntra
HWY_AFTER_NAMESPACE();

#endif  // include guard per target
