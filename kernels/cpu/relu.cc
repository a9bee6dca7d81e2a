// SPDX-License-Identifier: Apache-2.0
// relu: y = max(x, 0). relu_grad: dx = dy where y > 0.
#include "core/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/relu.cc"
#include "hwy/foreach_target.h"
#include "kernels/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace syntra {
namespace HWY_NAMESPACE {

template <typename T>
void ReluLoop(const T* x, T* y, int64_t count, bool accumulate) {
  ParallelVectorLoop(count, [=](int64_t i, auto lanes) {
    StoreResult(hn::Max(Load(x + i, lanes), hn::Zero(FloatTag())), y + i, lanes, accumulate);
  });
}

template <typename T>
void ReluGradLoop(const T* y, const T* dy, T* dx, int64_t count, bool accumulate) {
  ParallelVectorLoop(count, [=](int64_t i, auto lanes) {
    const auto active = hn::Gt(Load(y + i, lanes), hn::Zero(FloatTag()));
    StoreResult(hn::IfThenElseZero(active, Load(dy + i, lanes)), dx + i, lanes, accumulate);
  });
}

void Relu(DType dtype, int64_t count, bool accumulate, const KernelArguments& arguments) {
  WithActivation(dtype, [&](auto type) {
    using T = decltype(type);
    ReluLoop(Input<T>(arguments, 0), Output<T>(arguments, 0), count, accumulate);
  });
}

void ReluGrad(DType dtype, int64_t count, bool accumulate, const KernelArguments& arguments) {
  WithActivation(dtype, [&](auto type) {
    using T = decltype(type);
    ReluGradLoop(Input<T>(arguments, 0), Input<T>(arguments, 1), Output<T>(arguments, 0), count,
                 accumulate);
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace syntra
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace syntra {

HWY_EXPORT(Relu);
HWY_EXPORT(ReluGrad);

std::optional<BoundKernel> cpu_relu(const OpCall& call) {
  const TensorType x = call.inputs[0];
  if (!IsActivation(x) || !call.outputs[0].present()) return std::nullopt;
  BoundKernel kernel;
  kernel.accumulates = true;
  kernel.run = [x, accumulate = Accumulates(call, 0)](const KernelArguments& arguments) {
    HWY_DYNAMIC_DISPATCH(Relu)(x.dtype, x.shape.size(), accumulate, arguments);
  };
  return kernel;
}

std::optional<BoundKernel> cpu_relu_grad(const OpCall& call) {
  const TensorType y = call.inputs[0];
  if (!IsActivation(y) || call.inputs[1].dtype != y.dtype || !call.outputs[0].present()) {
    return std::nullopt;
  }
  BoundKernel kernel;
  kernel.accumulates = true;
  kernel.run = [y, accumulate = Accumulates(call, 0)](const KernelArguments& arguments) {
    HWY_DYNAMIC_DISPATCH(ReluGrad)(y.dtype, y.shape.size(), accumulate, arguments);
  };
  return kernel;
}

}  // namespace syntra
#endif
