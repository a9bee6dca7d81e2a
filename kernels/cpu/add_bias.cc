// SPDX-License-Identifier: Apache-2.0
// add_bias: x[.., j] + bias[j]. add_bias_grad: dbias[j] = sum over rows of dy[.., j].
#include "core/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/add_bias.cc"
#include "hwy/foreach_target.h"
#include "kernels/cpu/reduce-inl.h"

HWY_BEFORE_NAMESPACE();
namespace syntra {
namespace HWY_NAMESPACE {

void AddBias(const TensorType& type, bool accumulate, const KernelArguments& arguments) {
  const int64_t width = type.shape[-1];
  const float* bias = Input<float>(arguments, 1);
  WithActivation(type.dtype, [&](auto element) {
    using T = decltype(element);
    const T* x = Input<T>(arguments, 0);
    T* y = Output<T>(arguments, 0);
    ParallelFor(type.shape.rows(), RowGrain(width), [=](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const T* from = x + row * width;
        T* to = y + row * width;
        VectorLoop(width, [=](int64_t j, auto lanes) {
          StoreResult(hn::Add(Load(from + j, lanes), Load(bias + j, lanes)), to + j, lanes,
                      accumulate);
        });
      }
    });
  });
}

void AddBiasGrad(const TensorType& type, bool accumulate, const KernelArguments& arguments) {
  const int64_t width = type.shape[-1];
  const RowBlocks blocks = RowBlocks::Of(type.shape.rows());
  auto* partial = reinterpret_cast<float*>(arguments.workspace);
  WithActivation(type.dtype, [&](auto element) {
    using T = decltype(element);
    const T* dy = Input<T>(arguments, 0);
    ParallelFor(blocks.count, 1, [=](int64_t begin, int64_t end) {
      for (int64_t block = begin; block < end; ++block) {
        float* sums = partial + block * width;
        std::fill_n(sums, width, 0.0f);
        for (int64_t row = blocks.begin(block); row < blocks.end(block); ++row) {
          const T* from = dy + row * width;
          VectorLoop(width,
                     [=](int64_t j, auto lanes) { AddTo(Load(from + j, lanes), sums + j, lanes); });
        }
      }
    });
  });
  SumBlocks(partial, blocks.count, width, Output<float>(arguments, 0), accumulate);
}

}  // namespace HWY_NAMESPACE
}  // namespace syntra
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace syntra {

HWY_EXPORT(AddBias);
HWY_EXPORT(AddBiasGrad);

std::optional<BoundKernel> cpu_add_bias(const OpCall& call) {
  const TensorType x = call.inputs[0];
  if (!IsActivation(x) || !IsF32(call.inputs[1]) || call.outputs[0].dtype != x.dtype) {
    return std::nullopt;
  }
  BoundKernel kernel;
  kernel.accumulates = true;
  kernel.run = [x, accumulate = Accumulates(call, 0)](const KernelArguments& arguments) {
    HWY_DYNAMIC_DISPATCH(AddBias)(x, accumulate, arguments);
  };
  return kernel;
}

std::optional<BoundKernel> cpu_add_bias_grad(const OpCall& call) {
  const TensorType dy = call.inputs[0];
  if (!IsActivation(dy) || !IsF32(call.outputs[0])) return std::nullopt;
  BoundKernel kernel;
  kernel.accumulates = true;
  kernel.workspace_bytes = RowBlocks::Of(dy.shape.rows()).count * dy.shape[-1] * sizeof(float);
  kernel.run = [dy, accumulate = Accumulates(call, 0)](const KernelArguments& arguments) {
    HWY_DYNAMIC_DISPATCH(AddBiasGrad)(dy, accumulate, arguments);
  };
  return kernel;
}

}  // namespace syntra
#endif
