// SPDX-License-Identifier: Apache-2.0
// write_rows: puts new rows of each example into a cache, from row `start` on.
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
  int64_t rows, length, width;

  __device__ void operator()(int64_t row, int64_t column, int count) const {
    const int64_t to = *start + row % rows;
    if (to < 0 || to >= length) return;
    StoreEight(LoadEight(x + row * width + column, count),
               cache + (row / rows * length + to) * width + column, count);
  }
};

}  // namespace

std::optional<BoundKernel> cuda_write_rows(const OpCall& call) {
  const TensorType x = call.inputs[0], cache = call.outputs[0];
  BoundKernel kernel;
  kernel.run = [x, cache](const KernelArguments& arguments) {
    WithActivation(x.dtype, [&](auto type) {
      using T = decltype(type);
      Rowwise(arguments, x.shape[0] * x.shape[1], x.shape[2],
              WriteRows<T>{Input<T>(arguments, 0), Input<int32_t>(arguments, 1),
                           Output<T>(arguments, 0), x.shape[1], cache.shape[1], x.shape[2]});
    });
  };
  return kernel;
}

}  // namespace syntra
