// SPDX-License-Identifier: Apache-2.0
// Fused multiply-adds are off in the whole project and none is asked for here, so all instruction
// sets give the same bits.
#include "core/random_fill.h"

#include "core/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/random_fill.cc"
#include <algorithm>
#include <cmath>
#include "hwy/foreach_target.h"

#include "core/philox-inl.h"
#include "core/thread.h"

#ifndef SYNTRA_CORE_RANDOM_FILL_DISTRIBUTIONS_
#define SYNTRA_CORE_RANDOM_FILL_DISTRIBUTIONS_
namespace syntra {

struct UniformDistribution {
  float limit;
};

// Each tail probability is drawn from [lowest_tail, lowest_tail + tail_width).
struct NormalDistribution {
  float deviation, lowest_tail, tail_width;
};

}  // namespace syntra
#endif

HWY_BEFORE_NAMESPACE();
namespace syntra {
namespace HWY_NAMESPACE {

using FloatTag = hn::ScalableTag<float>;
using IntTag = hn::ScalableTag<int32_t>;
using FloatVector = hn::Vec<FloatTag>;
using WordVector = hn::Vec<WordTag>;

HWY_INLINE FloatVector Constant(float value) { return hn::Set(FloatTag(), value); }

// ((c0 x + c1) x + c2) ..
template <size_t n>
HWY_INLINE FloatVector Polynomial(const float (&coefficients)[n], FloatVector x) {
  FloatVector p = Constant(coefficients[0]);
  for (size_t i = 1; i < n; ++i) p = hn::Add(hn::Mul(p, x), Constant(coefficients[i]));
  return p;
}

// Natural logarithm of a positive normal number (exponent and a polynomial in the mantissa, as in
// Cephes' logf); relative error below 1e-6, enough for a random draw.
HWY_INLINE FloatVector Logarithm(FloatVector x) {
  constexpr float kMantissa[] = {7.0376836292e-2f,  -1.1514610310e-1f, 1.1676998740e-1f,
                                 -1.2420140846e-1f, 1.4249322787e-1f,  -1.6668057665e-1f,
                                 2.0000714765e-1f,  -2.4999993993e-1f, 3.3333331174e-1f};
  const FloatTag d;
  const IntTag di;
  // The mantissa moves to [sqrt(1/2), sqrt(2)).
  const auto root_half = hn::Set(di, 0x3f3504f3);
  const auto shifted = hn::Add(hn::BitCast(di, x), hn::Sub(hn::Set(di, 0x3f800000), root_half));
  const auto exponent = hn::ConvertTo(d, hn::Sub(hn::ShiftRight<23>(shifted), hn::Set(di, 127)));
  const auto mantissa = hn::Add(hn::And(shifted, hn::Set(di, 0x007fffff)), root_half);
  const auto f = hn::Sub(hn::BitCast(d, mantissa), Constant(1));
  const auto p = hn::Sub(hn::Mul(Polynomial(kMantissa, f), f), Constant(0.5f));
  return hn::Add(hn::Mul(exponent, Constant(0.693147180559945f)),
                 hn::Add(f, hn::Mul(hn::Mul(f, f), p)));
}

// The standard normal quantile at probability tail < 1/2 to the left, positive side: sqrt(2)
// erfinv(1 - 2 tail) by the two polynomials of Giles (2010), "Approximating the erfinv function".
HWY_INLINE FloatVector NormalQuantile(FloatVector tail) {
  constexpr float kCentre[] = {2.81022636e-08f,  3.43273939e-07f, -3.5233877e-06f,
                               -4.39150654e-06f, 0.00021858087f,  -0.00125372503f,
                               -0.00417768164f,  0.246640727f,    1.50140941f};
  constexpr float kTail[] = {-0.000200214257f, 0.000100950558f, 0.00134934322f,
                             -0.00367342844f,  0.00573950773f,  -0.0076224613f,
                             0.00943887047f,   1.00167406f,     2.83297682f};
  const FloatTag d;
  const auto both_sides = hn::Mul(hn::Mul(Constant(4), tail), hn::Sub(Constant(1), tail));
  const auto w = hn::Neg(Logarithm(both_sides));
  const auto central = hn::Lt(w, Constant(5));
  auto p = Polynomial(kCentre, hn::Sub(w, Constant(2.5f)));
  if (!hn::AllTrue(d, central)) {  // one draw in 300 is in the tail
    p = hn::IfThenElse(central, p, Polynomial(kTail, hn::Sub(hn::Sqrt(w), Constant(3))));
  }
  return hn::Mul(hn::Mul(Constant(1.41421356f), p),
                 hn::Sub(Constant(1), hn::Mul(Constant(2), tail)));
}

// (k + 1/2) 2^-bits for the leading `bits` of a word as the integer k.
template <int bits>
HWY_INLINE FloatVector UnitInterval(WordVector word) {
  const auto k = hn::ConvertTo(FloatTag(), hn::BitCast(IntTag(), hn::ShiftRight<32 - bits>(word)));
  return hn::Mul(hn::Add(k, Constant(0.5f)), Constant(1.0f / (int64_t{1} << bits)));
}

HWY_INLINE FloatVector Draw(const UniformDistribution& uniform, WordVector word) {
  const auto u = UnitInterval<24>(word);
  return hn::Mul(hn::Sub(hn::Mul(Constant(2), u), Constant(1)), Constant(uniform.limit));
}

// The last bit is the sign, the others the place in the tail.
HWY_INLINE FloatVector Draw(const NormalDistribution& normal, WordVector word) {
  const auto tail = hn::Add(Constant(normal.lowest_tail),
                            hn::Mul(UnitInterval<31>(word), Constant(normal.tail_width)));
  const auto x = hn::Mul(NormalQuantile(tail), Constant(normal.deviation));
  const auto negative = hn::ShiftLeft<31>(hn::Not(word));
  return hn::Xor(x, hn::BitCast(FloatTag(), negative));
}

template <typename Distribution>
void Fill(RandomKey key, const Distribution& distribution, std::span<float> values) {
  constexpr int64_t kWords = PhiloxStream::kWords, kGrain = 64 * kWords;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(FloatTag()));
  ParallelFor(static_cast<int64_t>(values.size()), kGrain, [&](int64_t begin, int64_t end) {
    PhiloxStream stream;
    stream.SetKey(key);
    alignas(64) uint32_t words[kWords];
    alignas(64) float drawn[kWords];
    for (int64_t i = begin; i < end; i += kWords) {
      stream.Generate(static_cast<uint64_t>(i / 4), 0, words);
      float* out = end - i >= kWords ? values.data() + i : drawn;
      for (int64_t j = 0; j < kWords; j += lanes) {
        hn::StoreU(Draw(distribution, hn::Load(WordTag(), words + j)), FloatTag(), out + j);
      }
      if (out == drawn) std::copy_n(drawn, end - i, values.begin() + i);
    }
  });
}

void DrawUniform(RandomKey key, const UniformDistribution& uniform, std::span<float> values) {
  Fill(key, uniform, values);
}
void DrawNormal(RandomKey key, const NormalDistribution& normal, std::span<float> values) {
  Fill(key, normal, values);
}

}  // namespace HWY_NAMESPACE
}  // namespace syntra
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace syntra {

HWY_EXPORT(DrawUniform);
HWY_EXPORT(DrawNormal);

void FillUniform(RandomKey key, double limit, std::span<float> values) {
  HWY_DYNAMIC_DISPATCH(DrawUniform)(key, {static_cast<float>(limit)}, values);
}

void FillNormal(RandomKey key, double deviation, double cut, std::span<float> values) {
  const double lowest = cut > 0 ? 0.5 * std::erfc(cut / std::sqrt(2.0)) : 0.0;
  HWY_DYNAMIC_DISPATCH(DrawNormal)
  (key,
   {static_cast<float>(deviation), static_cast<float>(lowest), static_cast<float>(0.5 - lowest)},
   values);
}

}  // namespace syntra
#endif
