// SPDX-License-Identifier: Apache-2.0
// write_rows: puts one new row per example at row `start` of a cache.
#include "kernels/cuda/rows.h"
#include "kernels/operands.h"

namespace syntra {
namespace {

using namespace gpu;

template <typename T>
struct WriteRows {
  const T* x;
  const int32_t* start;
  T* cache;
  int64_t length, width;

  __device__ void operator()(int64_t example, int64_t column, int count) const {
    if (*start < 0 || *start >= length) return;
    StoreEight(LoadEight(x + example * width + column, count),
               cache + (example * length + *start) * width + column, count);
  }
};

}  // namespace

std::optional<BoundKernel> cuda_write_rows(const OpCall& call) {
  const TensorType x = call.inputs[0], cache = call.outputs[0];
  if (!IsActivation(x) || cache.dtype != x.dtype) return std::nullopt;
  BoundKernel kernel;
  kernel.run = [x, cache](const KernelArguments& arguments) {
    WithActivation(x.dtype, [&](auto type) {
      using T = decltype(type);
      Rowwise(arguments, x.shape[0], x.shape[2],
              WriteRows<T>{Input<T>(arguments, 0), Input<int32_t>(arguments, 1),
                           Output<T>(arguments, 0), cache.shape[1], x.shape[2]});
    });
  };
  return kernel;
}

}  // namespace syntra
