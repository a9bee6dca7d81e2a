// SPDX-License-Identifier: Apache-2.0
// sum_to: y[k] = sum over r of x[k, r] factor[k, r]. The terms are split into parts, by shape
// alone. If the innermost axis is summed, a warp sums a part of a result, else a thread does. If a
// result's terms lie side by side, as in the norm of all gradients, each lane takes eight of them
// at a time.
#include "kernels/cuda/reduce.h"
#include "kernels/cuda/strided.h"
#include "kernels/sum_plan.h"

namespace syntra {
namespace {

using namespace gpu;

template <typename X, typename F, typename Sum>
struct AxisSums {
  SumPlan plan;
  const X* x;
  const F* factor;  // null: a factor of one
  int64_t results, terms, parts;
  Sum* sums;  // [parts, results]
  bool accumulate;

  __device__ float Term(const Places<3>& result, int64_t term) const {
    const int64_t inner = plan.summed.inner(), row = plan.summed.rank == 1 ? 0 : term / inner;
    const int64_t column = term - row * inner;
    const Places<2> at = plan.summed.Row(row);
    const float value = ToFloat(x[result.of[1] + at.of[0] + column * plan.summed.inner_stride(0)]);
    if (factor == nullptr) return value;
    return value * ToFloat(factor[result.of[2] + at.of[1] + column * plan.summed.inner_stride(1)]);
  }

  __device__ Places<3> Result(int64_t k) const {
    const int64_t inner = plan.kept.inner(), row = plan.kept.rank == 1 ? 0 : k / inner;
    Places<3> at = plan.kept.Row(row);
    for (int i = 1; i < 3; ++i) at.of[i] += (k - row * inner) * plan.kept.inner_stride(i);
    return at;
  }

  // The sum of every `stride`-th term of a part.
  __device__ float SumOf(int64_t item, int64_t first, int64_t stride) const {
    const int64_t part = item / results;
    const Places<3> result = Result(item % results);
    const int64_t end = terms * (part + 1) / parts;
    float sum = 0.0f;
    for (int64_t term = terms * part / parts + first; term < end; term += stride) {
      sum += Term(result, term);
    }
    return sum;
  }

  // This lane's share of the sum of a part, of terms side by side.
  __device__ float SumOfRun(int64_t item) const {
    const int64_t part = item / results, pieces = DivideUp(terms, int64_t{kEight});
    const Places<3> result = Result(item % results);
    const int64_t end = pieces * (part + 1) / parts;
    float sum = 0.0f;
    for (int64_t piece = pieces * part / parts + LaneIndex(); piece < end; piece += kWarp) {
      const int64_t first = piece * kEight, left = terms - first;
      const int count = left < kEight ? static_cast<int>(left) : kEight;
      const Eight values = LoadEight(x + result.of[1] + first, count);
      Eight factors;
      if (factor != nullptr) factors = LoadEight(factor + result.of[2] + first, count);
#pragma unroll
      for (int k = 0; k < kEight; ++k)
        sum += factor != nullptr ? values[k] * factors[k] : values[k];
    }
    return sum;
  }
};

template <typename X, typename F, typename Sum>
__global__ void ThreadSumsKernel(AxisSums<X, F, Sum> call) {
  ForThreadItems(call.parts * call.results, [&](int64_t item) {
    StoreResult(call.SumOf(item, 0, 1), call.sums + item, call.accumulate);
  });
}

// kRuns: the terms of each result are side by side.
template <bool kRuns, typename X, typename F, typename Sum>
__global__ void WarpSumsKernel(AxisSums<X, F, Sum> call) {
  const int64_t stride = BlockCount() * WarpCount();
  for (int64_t item = BlockIndex() * WarpCount() + WarpIndex(); item < call.parts * call.results;
       item += stride) {
    const float sum = WarpSum(kRuns ? call.SumOfRun(item) : call.SumOf(item, LaneIndex(), kWarp));
    if (LaneIndex() == 0) StoreResult(sum, call.sums + item, call.accumulate);
  }
}

bool AreRuns(const SumPlan& plan, bool has_factor) {
  return plan.along_rows && plan.summed.rank == 1 && plan.summed.inner_stride(0) == 1 &&
         (!has_factor || plan.summed.inner_stride(1) == 1);
}

// Enough parts to keep a GPU busy where there are few results, and enough terms in each.
int64_t PartsFor(const SumPlan& plan) {
  constexpr int64_t kBusyThreads = 2 * kTunedMultiprocessors * kThreads, kFewestTerms = 16;
  const int64_t lanes = plan.along_rows ? kWarp : 1;
  return std::clamp<int64_t>(kBusyThreads / (plan.results() * lanes), 1,
                             std::max<int64_t>(1, plan.terms() / (kFewestTerms * lanes)));
}

}  // namespace

std::optional<BoundKernel> cuda_sum_to(const OpCall& call) {
  const TensorType x = call.inputs[0], factor = call.inputs[1], y = call.outputs[0];
  if (y.shape.size() == x.shape.size()) {
    return BindStrided(StridedCall::Broadcast(call, StridedOp::kMultiply, x.shape));
  }
  const SumPlan plan = SumPlan::Of(x, factor, y);
  const int64_t results = plan.results(), parts = PartsFor(plan);
  BoundKernel kernel;
  kernel.accumulates = true;
  if (parts > 1) kernel.workspace_bytes = parts * results * sizeof(float);
  kernel.run = [=, accumulate = Accumulates(call, 0)](const KernelArguments& arguments) {
    const auto sum = [&]<typename Sum>(Sum* sums, bool adds) {
      WithActivation(x.dtype, [&](auto x_type) {
        WithActivation(factor.dtype, [&](auto factor_type) {
          using X = decltype(x_type);
          using F = decltype(factor_type);
          const AxisSums<X, F, Sum> call{plan,
                                         Input<X>(arguments, 0),
                                         Input<F>(arguments, 1),
                                         results,
                                         plan.terms(),
                                         parts,
                                         sums,
                                         adds};
          if (AreRuns(plan, factor.present())) {
            Launch(arguments, GridFor(parts * results * kWarp), WarpSumsKernel<true, X, F, Sum>,
                   call);
          } else if (plan.along_rows) {
            Launch(arguments, GridFor(parts * results * kWarp), WarpSumsKernel<false, X, F, Sum>,
                   call);
          } else {
            Launch(arguments, GridFor(parts * results), ThreadSumsKernel<X, F, Sum>, call);
          }
        });
      });
    };
    WithActivation(y.dtype, [&](auto type) {
      auto* result = Output<decltype(type)>(arguments, 0);
      if (parts == 1) return sum(result, accumulate);
      auto* partial = reinterpret_cast<float*>(arguments.workspace);
      sum(partial, false);
      SumParts(arguments, partial, parts, results, result, accumulate);
    });
  };
  return kernel;
}

}  // namespace syntra
