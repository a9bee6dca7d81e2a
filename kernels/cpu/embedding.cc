// SPDX-License-Identifier: Apache-2.0
// embedding: rows of a table. embedding_grad: dtable[v] = sum of dy over the positions with id v,
// in position order. Each thread owns a range of columns, so the order does not depend on threads.
#include "core/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/embedding.cc"
#include "hwy/foreach_target.h"
#include "kernels/cpu/reduce-inl.h"

HWY_BEFORE_NAMESPACE();
namespace syntra {
namespace HWY_NAMESPACE {

void Embedding(const TensorType& type, bool accumulate, const KernelArguments& arguments) {
  const int64_t width = type.shape[-1];
  const auto* ids = Input<int32_t>(arguments, 0);
  const auto* table = Input<float>(arguments, 1);
  WithActivation(type.dtype, [&](auto element) {
    auto* y = Output<decltype(element)>(arguments, 0);
    ParallelFor(type.shape.rows(), RowGrain(width), [=](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const float* from = table + ids[row] * width;
        auto* to = y + row * width;
        VectorLoop(width, [=](int64_t j, auto lanes) {
          StoreResult(Load(from + j, lanes), to + j, lanes, accumulate);
        });
      }
    });
  });
}

void EmbeddingGrad(const TensorType& type, int64_t vocabulary, bool accumulate,
                   const KernelArguments& arguments) {
  const int64_t rows = type.shape.rows(), width = type.shape[-1];
  const auto* ids = Input<int32_t>(arguments, 0);
  auto* table = Output<float>(arguments, 0);
  if (!accumulate) {
    ParallelFor(vocabulary * width, kGrain,
                [=](int64_t begin, int64_t end) { std::fill(table + begin, table + end, 0.0f); });
  }
  WithActivation(type.dtype, [&](auto element) {
    const auto* dy = Input<decltype(element)>(arguments, 1);
    // 64 columns are whole cache lines in both types.
    ParallelFor(width, 64, [=](int64_t begin, int64_t end) {
      for (int64_t row = 0; row < rows; ++row) {
        const auto* from = dy + row * width + begin;
        float* to = table + ids[row] * width + begin;
        VectorLoop(end - begin,
                   [=](int64_t j, auto lanes) { AddTo(Load(from + j, lanes), to + j, lanes); });
      }
    });
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace syntra
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace syntra {

HWY_EXPORT(Embedding);
HWY_EXPORT(EmbeddingGrad);

namespace {

void CheckIds(const int32_t* ids, int64_t count, int64_t vocabulary) {
  for (int64_t i = 0; i < count; ++i) {
    SYNTRA_CHECK(ids[i] >= 0 && ids[i] < vocabulary, "id {} outside a vocabulary of {}", ids[i],
                 vocabulary);
  }
}

}  // namespace

std::optional<BoundKernel> cpu_embedding(const OpCall& call) {
  const TensorType y = call.outputs[0];
  BoundKernel kernel;
  kernel.accumulates = true;
  kernel.run = [y, vocabulary = call.inputs[1].shape[0],
                accumulate = Accumulates(call, 0)](const KernelArguments& arguments) {
    CheckIds(Input<int32_t>(arguments, 0), y.shape.rows(), vocabulary);
    HWY_DYNAMIC_DISPATCH(Embedding)(y, accumulate, arguments);
  };
  return kernel;
}

std::optional<BoundKernel> cpu_embedding_grad(const OpCall& call) {
  const TensorType dy = call.inputs[1];
  BoundKernel kernel;
  kernel.accumulates = true;
  kernel.run = [dy, vocabulary = call.outputs[0].shape[0],
                accumulate = Accumulates(call, 0)](const KernelArguments& arguments) {
    CheckIds(Input<int32_t>(arguments, 0), dy.shape.rows(), vocabulary);
    HWY_DYNAMIC_DISPATCH(EmbeddingGrad)(dy, vocabulary, accumulate, arguments);
  };
  return kernel;
}

}  // namespace syntra
#endif
