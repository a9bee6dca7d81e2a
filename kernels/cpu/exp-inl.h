// SPDX-License-Identifier: Apache-2.0
// exp for softmax and sigmoid: exp(x) = 2^n exp(r) with n = round(x / ln 2), r in [-ln2/2, ln2/2],
// and a polynomial for exp(r) whose relative error is below 1e-7.
#if defined(SYNTRA_KERNELS_CPU_EXP_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SYNTRA_KERNELS_CPU_EXP_INL_H_
#undef SYNTRA_KERNELS_CPU_EXP_INL_H_
#else
#define SYNTRA_KERNELS_CPU_EXP_INL_H_
#endif

#include "kernels/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace syntra {
namespace HWY_NAMESPACE {

// exp(x) for x <= 88. Below -86.6 the result is zero. NaN stays NaN.
HWY_INLINE FloatVector FastExp(FloatVector x) {
  const FloatTag d;
  const hn::RebindToSigned<FloatTag> d32;
  const auto set = [](float c) { return hn::Set(FloatTag(), c); };
  // After adding 1.5 * 2^23 the low bits of the sum hold the rounded quotient.
  const FloatVector shifted = hn::MulAdd(x, set(1.44269504f), set(12582912.0f));
  const FloatVector n = hn::Sub(shifted, set(12582912.0f));
  // ln 2 is split in two parts. The first ends in zero bits, so that n times it is exact.
  const FloatVector near = hn::NegMulAdd(n, set(0.693359375f), x);
  const FloatVector r = hn::NegMulAdd(n, set(-2.12194440e-4f), near);
  // The Taylor series to r^7, by Estrin's scheme.
  const FloatVector square = hn::Mul(r, r);
  const FloatVector p01 = hn::Add(set(1.0f), r);
  const FloatVector p23 = hn::MulAdd(r, set(1.0f / 6), set(0.5f));
  const FloatVector p45 = hn::MulAdd(r, set(1.0f / 120), set(1.0f / 24));
  const FloatVector p67 = hn::MulAdd(r, set(1.0f / 5040), set(1.0f / 720));
  const FloatVector high = hn::MulAdd(square, p67, p45);
  const FloatVector power = hn::MulAdd(square, hn::MulAdd(square, high, p23), p01);
  const auto exponent = hn::ShiftLeft<23>(hn::BitCast(d32, shifted));
  const FloatVector scaled = hn::BitCast(d, hn::Add(hn::BitCast(d32, power), exponent));
  const FloatVector power_of_x = hn::IfThenZeroElse(hn::Lt(x, set(-86.6f)), scaled);
  // Of NaN the exponent above is arbitrary.
  return hn::IfThenElse(hn::IsNaN(x), x, power_of_x);
}

}  // namespace HWY_NAMESPACE
}  // namespace syntra
HWY_AFTER_NAMESPACE();

#endif  // include guard per target
