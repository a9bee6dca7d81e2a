// SPDX-License-Identifier: Apache-2.0
// sum_squares: the sum of x^2 in double, by blocks that depend only on the number of elements.
#include "core/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/sum_squares.cc"
#include "hwy/foreach_target.h"
#include "kernels/cpu/reduce-inl.h"

HWY_BEFORE_NAMESPACE();
namespace syntra {
namespace HWY_NAMESPACE {

double SumSquares(const float* x, int64_t count, double* partial) {
  return ParallelDotInDouble(x, x, count, partial);
}

}  // namespace HWY_NAMESPACE
}  // namespace syntra
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace syntra {

HWY_EXPORT(SumSquares);

std::optional<BoundKernel> cpu_sum_squares(const OpCall& call) {
  if (!IsF32(call.inputs[0]) || !IsF32(call.outputs[0])) return std::nullopt;
  BoundKernel kernel;
  kernel.accumulates = true;
  const int64_t count = call.inputs[0].shape.size();
  kernel.workspace_bytes = ElementBlocks(count) * sizeof(double);
  kernel.run = [count, accumulate = Accumulates(call, 0)](const KernelArguments& arguments) {
    const double sum = HWY_DYNAMIC_DISPATCH(SumSquares)(
        Input<float>(arguments, 0), count, reinterpret_cast<double*>(arguments.workspace));
    float* result = Output<float>(arguments, 0);
    *result = static_cast<float>(accumulate ? *result + sum : sum);
  };
  return kernel;
}

}  // namespace syntra
#endif
