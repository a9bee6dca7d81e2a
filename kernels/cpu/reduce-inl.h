// SPDX-License-Identifier: Apache-2.0
// Sums over rows or elements that do not depend on the number of threads, and maxima. The operand
// of a sum is split into blocks whose size depends only on its shape. Each block is summed, then
// the blocks' sums in order.
#if defined(SYNTRA_KERNELS_CPU_REDUCE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SYNTRA_KERNELS_CPU_REDUCE_INL_H_
#undef SYNTRA_KERNELS_CPU_REDUCE_INL_H_
#else
#define SYNTRA_KERNELS_CPU_REDUCE_INL_H_
#endif

#include "kernels/cpu/reduction_blocks.h"
#include "kernels/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace syntra {
namespace HWY_NAMESPACE {

// result[j] (+)= sum over blocks of partial[block, j].
template <typename T>
void SumBlocks(const float* partial, int64_t blocks, int64_t width, T* result, bool accumulate) {
  const int64_t grain = std::max<int64_t>(64, kGrain / blocks / 64 * 64);
  ParallelFor(width, grain, [&](int64_t begin, int64_t end) {
    VectorLoop(end - begin, [&](int64_t i, auto lanes) {
      FloatVector sum = hn::Zero(FloatTag());
      for (int64_t block = 0; block < blocks; ++block) {
        sum = hn::Add(sum, Load(partial + block * width + begin + i, lanes));
      }
      StoreResult(sum, result + begin + i, lanes, accumulate);
    });
  });
}

// sum of x[j] * y[j] for j in [0, count), in f32.
template <typename X, typename Y>
HWY_INLINE float Dot(const X* x, const Y* y, int64_t count) {
  FloatVector sum = hn::Zero(FloatTag());
  VectorLoop(count, [&](int64_t j, auto lanes) {
    sum = hn::MulAdd(Load(x + j, lanes), Load(y + j, lanes), sum);
  });
  return SumLanes(sum);
}

// The largest of x[0, width). NaN is passed over.
template <typename T>
float LargestOf(const T* x, int64_t width) {
  const FloatVector lowest = hn::Set(FloatTag(), -HUGE_VALF);
  FloatVector largest = lowest;
  // If one operand is NaN, Max gives the second.
  const auto take = [&](FloatVector value) { largest = hn::Max(value, largest); };
  VectorLoop(width, [&](int64_t j, auto lanes) {
    const FloatVector value = Load(x + j, lanes);
    if constexpr (std::is_same_v<decltype(lanes), Part>) {
      take(hn::IfThenElse(hn::FirstN(FloatTag(), lanes.count), value, lowest));
    } else {
      take(value);
    }
  });
  return hn::GetLane(hn::MaxOfLanes(FloatTag(), largest));
}

// to[j] += value for one vector, the inner part of a sum over rows.
template <typename Lanes>
HWY_INLINE void AddTo(FloatVector value, float* to, Lanes lanes) {
  Store(hn::Add(value, Load(to, lanes)), to, lanes);
}

// Adds the products of two vectors to a sum in double.
HWY_INLINE hn::Vec<hn::ScalableTag<double>> AddProducts(FloatVector a, FloatVector b,
                                                        hn::Vec<hn::ScalableTag<double>> sum) {
  const hn::ScalableTag<double> d;
#if HWY_TARGET == HWY_SCALAR
  return hn::MulAdd(hn::PromoteTo(d, a), hn::PromoteTo(d, b), sum);
#else
  const hn::Half<FloatTag> half;
  sum = hn::MulAdd(hn::PromoteTo(d, hn::LowerHalf(half, a)),
                   hn::PromoteTo(d, hn::LowerHalf(half, b)), sum);
  return hn::MulAdd(hn::PromoteTo(d, hn::UpperHalf(half, a)),
                    hn::PromoteTo(d, hn::UpperHalf(half, b)), sum);
#endif
}

// sum of a[i] * b[i] for i in [0, count), in double.
template <typename A, typename B>
double DotInDouble(const A* a, const B* b, int64_t count) {
  const hn::ScalableTag<double> d;
  auto sum = hn::Zero(d);
  VectorLoop(count, [&](int64_t i, auto lanes) {
    sum = AddProducts(Load(a + i, lanes), Load(b + i, lanes), sum);
  });
  return hn::GetLane(hn::SumOfLanes(d, sum));
}

// As DotInDouble, in parallel by blocks. `partial` has room for ElementBlocks(count) elements.
template <typename A, typename B>
double ParallelDotInDouble(const A* a, const B* b, int64_t count, double* partial) {
  const int64_t blocks = ElementBlocks(count);
  ParallelFor(blocks, 1, [&](int64_t begin, int64_t end) {
    for (int64_t block = begin; block < end; ++block) {
      const int64_t first = block * kElementBlock;
      partial[block] = DotInDouble(a + first, b + first, std::min(kElementBlock, count - first));
    }
  });
  double sum = 0.0;
  for (int64_t block = 0; block < blocks; ++block) sum += partial[block];
  return sum;
}

}  // namespace HWY_NAMESPACE
}  // namespace syntra
HWY_AFTER_NAMESPACE();

#endif  // include guard per target
