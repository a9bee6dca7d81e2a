// SPDX-License-Identifier: Apache-2.0
// sum_to: y[k] = sum over r of x[k, r] factor[k, r]. The terms are split into parts, by shape
// alone. Each part of each result is summed, then the parts in order.
#include "base/divide.h"
#include "core/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/sum_to.cc"
#include "hwy/foreach_target.h"
#include "kernels/cpu/reduce-inl.h"
#include "kernels/cpu/strided-inl.h"
#include "kernels/cpu/strided.h"
#include "kernels/cpu/sum_to.h"

HWY_BEFORE_NAMESPACE();
namespace syntra {
namespace HWY_NAMESPACE {

// Stands for a factor that is absent.
struct One {};

template <typename Stride, typename Lanes>
HWY_INLINE FloatVector Times(FloatVector x, const One*, Stride, int64_t, Lanes) {
  return x;
}
template <typename F, typename Stride, typename Lanes>
HWY_INLINE FloatVector Times(FloatVector x, const F* factor, Stride stride, int64_t j,
                             Lanes lanes) {
  return hn::Mul(x, LoadStrided(factor, stride, j, lanes));
}

// The terms of a part.
struct Terms {
  int64_t begin, end;

  static Terms Of(const SumCall& call, int64_t part) {
    const int64_t terms = call.plan.terms();
    return {terms * part / call.parts, terms * (part + 1) / call.parts};
  }
};

// Calls body(places, count) for the stretches of terms of one row of the loop.
template <typename Body>
HWY_INLINE void ForEachStretch(const StridedLoop<2>& loop, Terms terms, const Body& body) {
  const int64_t inner = loop.inner();
  for (int64_t term = terms.begin; term < terms.end;) {
    const int64_t column = term % inner, count = std::min(inner - column, terms.end - term);
    Places<2> at = loop.Row(term / inner);
    for (int k = 0; k < 2; ++k) at.of[k] += column * loop.inner_stride(k);
    body(at, count);
    term += count;
  }
}

// The results are columns: adds one row of x after the other to `count` sums.
template <typename X, typename F>
void SumColumns(const SumPlan& plan, Terms terms, const X* x, const F* factor, int64_t count,
                float* sums) {
  std::fill_n(sums, count, 0.0f);
  const int64_t x_row = plan.summed.inner_stride(0), factor_row = plan.summed.inner_stride(1);
  const int64_t factor_column = plan.kept.inner_stride(2);
  ForEachStretch(plan.summed, terms, [&](const Places<2>& at, int64_t rows) {
    for (int64_t row = 0; row < rows; ++row) {
      const X* from = x + at.of[0] + row * x_row;
      const F* by = factor + at.of[1] + row * factor_row;
      VectorLoop(count, [=](int64_t j, auto lanes) {
        AddTo(Times(Load(from + j, lanes), by, factor_column, j, lanes), sums + j, lanes);
      });
    }
  });
}

// The results are rows: the sum of one row's terms. Stretches of a few thousand are summed in
// vectors of floats, these sums in double.
template <typename X, typename F>
float SumRow(const SumPlan& plan, Terms terms, const X* x, const F* factor) {
  constexpr int64_t kStretch = 4096;
  const int64_t factor_stride = plan.summed.inner_stride(1);
  double total = 0.0;
  ForEachStretch(plan.summed, terms, [&](const Places<2>& at, int64_t count) {
    for (int64_t first = 0; first < count; first += kStretch) {
      const X* from = x + at.of[0] + first;
      const F* by = factor + at.of[1] + first * factor_stride;
      FloatVector sum = hn::Zero(FloatTag());
      VectorLoop(std::min(kStretch, count - first), [&](int64_t j, auto lanes) {
        sum = hn::Add(sum, Valid(Times(Load(from + j, lanes), by, factor_stride, j, lanes), lanes));
      });
      total += SumLanes(sum);
    }
  });
  return static_cast<float>(total);
}

// partial[part, k] is a part's sum of result k.
template <typename X, typename F>
void SumParts(const SumCall& call, const X* x, const F* factor, float* partial) {
  const StridedLoop<3>& kept = call.plan.kept;
  const int64_t terms = call.plan.terms() / call.parts, results = call.plan.results();
  const int64_t piece = call.plan.along_rows ? std::clamp<int64_t>(kGrain / terms, 1, 1024) : 1024;
  const int64_t inner = kept.inner(), pieces = DivideUp(inner, piece);
  const int64_t items = kept.rows() * pieces, grain = RowGrain(std::min(inner, piece) * terms);
  ParallelFor(call.parts * items, grain, [&](int64_t begin, int64_t end) {
    for (int64_t item = begin; item < end; ++item) {
      const Terms part = Terms::Of(call, item / items);
      const int64_t row = item % items / pieces, first = item % pieces * piece;
      const int64_t count = std::min(piece, inner - first);
      const Places<3> at = kept.Row(row);
      float* sums = partial + item / items * results + row * inner + first;
      const X* from = x + at.of[1] + first * kept.inner_stride(1);
      const F* by = factor + at.of[2] + first * kept.inner_stride(2);
      if (!call.plan.along_rows) {
        SumColumns(call.plan, part, from, by, count, sums);
        continue;
      }
      for (int64_t j = 0; j < count; ++j) {
        sums[j] =
            SumRow(call.plan, part, from + j * kept.inner_stride(1), by + j * kept.inner_stride(2));
      }
    }
  });
}

void SumTo(const SumCall& call, const KernelArguments& arguments) {
  auto* partial = reinterpret_cast<float*>(arguments.workspace);
  WithActivation(call.x, [&](auto x_type) {
    const auto* x = Input<decltype(x_type)>(arguments, 0);
    if (call.factor == DType::kNone)
      return SumParts(call, x, static_cast<const One*>(nullptr), partial);
    WithActivation(call.factor, [&](auto factor_type) {
      SumParts(call, x, Input<decltype(factor_type)>(arguments, 1), partial);
    });
  });
  WithActivation(call.y, [&](auto type) {
    SumBlocks(partial, call.parts, call.plan.results(), Output<decltype(type)>(arguments, 0),
              call.accumulate);
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace syntra
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace syntra {

HWY_EXPORT(SumTo);

namespace {

// Enough parts for many threads where there are few results.
int64_t PartsOf(const SumPlan& plan) {
  constexpr int64_t kManyResults = 65536;
  if (plan.results() >= kManyResults) return 1;
  const int64_t terms = plan.terms();
  return plan.along_rows ? std::min<int64_t>(64, ElementBlocks(terms)) : RowBlocks::Of(terms).count;
}

}  // namespace

std::optional<BoundKernel> cpu_sum_to(const OpCall& call) {
  const TensorType &x = call.inputs[0], &factor = call.inputs[1], &y = call.outputs[0];
  if (y.shape.size() == x.shape.size()) {
    return BindStrided(StridedCall::Broadcast(call, StridedOp::kMultiply, x.shape));
  }
  const SumPlan plan = SumPlan::Of(x, factor, y);
  const SumCall sum{plan, PartsOf(plan), x.dtype, factor.dtype, y.dtype, Accumulates(call, 0)};
  BoundKernel kernel;
  kernel.accumulates = true;
  kernel.workspace_bytes = sum.parts * plan.results() * sizeof(float);
  kernel.run = [sum](const KernelArguments& arguments) {
    HWY_DYNAMIC_DISPATCH(SumTo)(sum, arguments);
  };
  return kernel;
}

}  // namespace syntra
#endif
