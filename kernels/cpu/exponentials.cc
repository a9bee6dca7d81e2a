// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/exponentials.h"

#include <algorithm>

#include "core/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/exponentials.cc"
#include "hwy/foreach_target.h"
#include "kernels/cpu/exp-inl.h"
#include "kernels/cpu/reduce-inl.h"

HWY_BEFORE_NAMESPACE();
namespace syntra {
namespace HWY_NAMESPACE {

BlockExponentials SumOf(const float* logits, int64_t count, float scale, float bound) {
  const FloatTag d;
  const float largest = LargestOf(logits, count);
  FloatVector sum = hn::Zero(d);
  VectorLoop(count, [&](int64_t j, auto lanes) {
    const FloatVector logit = Load(logits + j, lanes);
    const FloatVector below = hn::Sub(logit, hn::Set(d, largest));
    const FloatVector exponential = FastExp(hn::Mul(below, hn::Set(d, scale)));
    // Not Ge, which is false for NaN.
    const auto counts = hn::Not(hn::Lt(logit, hn::Set(d, bound)));
    sum = hn::Add(sum, Valid(hn::IfThenElseZero(counts, exponential), lanes));
  });
  return {largest, SumLanes(sum)};
}

void MaximaOf(const float* logits, int64_t count, float* largest) {
  for (int64_t first = 0; first < count; first += kMaximumBlock) {
    *largest++ = LargestOf(logits + first, std::min(kMaximumBlock, count - first));
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace syntra
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace syntra {

HWY_EXPORT(SumOf);
HWY_EXPORT(MaximaOf);

BlockExponentials SumExponentials(const float* logits, int64_t count, float scale, float bound) {
  return HWY_DYNAMIC_DISPATCH(SumOf)(logits, count, scale, bound);
}

void LargestOfBlocks(const float* logits, int64_t count, float* largest) {
  HWY_DYNAMIC_DISPATCH(MaximaOf)(logits, count, largest);
}

}  // namespace syntra
#endif
