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

// 2^n of a whole number n times `power`, which is finite; zero where `counts` is false.
HWY_INLINE FloatVector ScaleByPower(FloatVector power, FloatVector n, hn::Mask<FloatTag> counts) {
#if SYNTRA_AVX512
  return FloatVector{_mm512_maskz_scalef_ps(counts.raw, power.raw, n.raw)};
#else
  const hn::RebindToSigned<FloatTag> d32;
  const auto exponent = hn::ShiftLeft<23>(hn::ConvertTo(d32, n));
  const FloatVector scaled = hn::BitCast(FloatTag(), hn::Add(hn::BitCast(d32, power), exponent));
  // The exponent computed from a NaN is arbitrary.
  return hn::IfThenElseZero(counts, hn::IfThenElse(hn::IsNaN(power), power, scaled));
#endif
}

// exp(x) where it is finite. Below -86.6 the result is zero. NaN stays NaN.
HWY_INLINE FloatVector FastExp(FloatVector x) {
  const auto set = [](float c) { return hn::Set(FloatTag(), c); };
  const FloatVector n = hn::Round(hn::Mul(x, set(1.44269504f)));
  // ln 2 is split in two parts. The first ends in zero bits, so that n times it is exact.
  const FloatVector near = hn::NegMulAdd(n, set(0.693359375f), x);
  const FloatVector r = hn::NegMulAdd(n, set(-2.12194440e-4f), near);
  // The polynomial whose largest error is least, by Estrin's scheme.
  const FloatVector square = hn::Mul(r, r);
  const FloatVector p01 = hn::Add(set(1.0f), r);
  const FloatVector p23 = hn::MulAdd(r, set(0.166665211f), set(0.49999994f));
  const FloatVector p45 = hn::MulAdd(r, set(0.00836874545f), set(0.041668389f));
  const FloatVector high = hn::MulAdd(square, set(0.00138145406f), p45);
  const FloatVector power = hn::MulAdd(square, hn::MulAdd(square, high, p23), p01);
  // Not Ge, which is false for NaN.
  return ScaleByPower(power, n, hn::Not(hn::Lt(x, set(-86.6f))));
}

}  // namespace HWY_NAMESPACE
}  // namespace syntra
HWY_AFTER_NAMESPACE();

#endif  // include guard per target
