// SPDX-License-Identifier: Apache-2.0
// row_dot: y[h, n] = sum_r a[h,n,r] b[h,n,r]. Its gradient: da = d b, db = d a, row by row.
#include "core/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/row_dot.cc"
#include "hwy/foreach_target.h"
#include "kernels/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace syntra {
namespace HWY_NAMESPACE {

void RowDot(int64_t rows, int64_t width, bool accumulate, const KernelArguments& arguments) {
  const float *a = Input<float>(arguments, 0), *b = Input<float>(arguments, 1);
  float* y = Output<float>(arguments, 0);
  ParallelFor(rows, RowGrain(width), [=](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      FloatVector sum = hn::Zero(FloatTag());
      VectorLoop(width, [&](int64_t r, auto lanes) {
        sum = hn::MulAdd(Load(a + row * width + r, lanes), Load(b + row * width + r, lanes), sum);
      });
      y[row] = SumLanes(sum) + (accumulate ? y[row] : 0.0f);
    }
  });
}

// to[row, :] = d[row] * from[row, :].
void ScaleRows(const float* d, const float* from, int64_t rows, int64_t width, bool accumulate,
               float* to) {
  ParallelFor(rows, RowGrain(width), [=](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const FloatVector scale = hn::Set(FloatTag(), d[row]);
      VectorLoop(width, [&](int64_t r, auto lanes) {
        const int64_t i = row * width + r;
        StoreResult(hn::Mul(scale, Load(from + i, lanes)), to + i, lanes, accumulate);
      });
    }
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace syntra
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace syntra {

HWY_EXPORT(RowDot);
HWY_EXPORT(ScaleRows);

std::optional<BoundKernel> cpu_row_dot(const OpCall& call) {
  const Shape shape = call.inputs[0].shape;
  if (!IsF32(call.inputs[0]) || !IsF32(call.inputs[1])) return std::nullopt;
  BoundKernel kernel;
  kernel.accumulates = true;
  kernel.run = [shape, accumulate = Accumulates(call, 0)](const KernelArguments& arguments) {
    HWY_DYNAMIC_DISPATCH(RowDot)(shape.rows(), shape[-1], accumulate, arguments);
  };
  return kernel;
}

std::optional<BoundKernel> cpu_row_dot_grad(const OpCall& call) {
  for (const TensorType& type : call.inputs) {
    if (!IsF32(type)) return std::nullopt;
  }
  BoundKernel kernel;
  kernel.accumulates = true;
  kernel.run = [call](const KernelArguments& arguments) {
    const Shape& shape = call.inputs[0].shape;
    for (int i = 0; i < 2; ++i) {
      if (arguments.outputs[i] == nullptr) continue;
      HWY_DYNAMIC_DISPATCH(ScaleRows)
      (Input<float>(arguments, 2), Input<float>(arguments, 1 - i), shape.rows(), shape[-1],
       Accumulates(call, i), Output<float>(arguments, i));
    }
  };
  return kernel;
}

}  // namespace syntra
#endif
