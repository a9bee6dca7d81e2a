// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/exponentials.h"

#include "core/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/exponentials.cc"
#include "hwy/foreach_target.h"
#include "kernels/cpu/exp-inl.h"
#include "kernels/cpu/reduce-inl.h"

HWY_BEFORE_NAMESPACE();
namespace syntra {
namespace HWY_NAMESPACE {

BlockExponentials SumOf(const float* logits, int64_t count) {
  const FloatTag d;
  const float largest = LargestOf(logits, count);
  FloatVector sum = hn::Zero(d);
  VectorLoop(count, [&](int64_t j, auto lanes) {
    const FloatVector below = hn::Sub(Load(logits + j, lanes), hn::Set(d, largest));
    sum = hn::Add(sum, Valid(FastExp(below), lanes));
  });
  return {largest, SumLanes(sum)};
}

}  // namespace HWY_NAMESPACE
}  // namespace syntra
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace syntra {

HWY_EXPORT(SumOf);

BlockExponentials SumExponentials(const float* logits, int64_t count) {
  return HWY_DYNAMIC_DISPATCH(SumOf)(logits, count);
}

}  // namespace syntra
#endif
