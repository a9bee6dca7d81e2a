// SPDX-License-Identifier: Apache-2.0
// take_rows: the first rows of each example of a cache, from another example.
#include "kernels/cuda/rows.h"
#include "kernels/operands.h"

namespace syntra {
namespace {

using namespace gpu;

template <typename T>
struct TakeRows {
  const T* x;
  const int32_t *parents, *length;
  T* y;
  int64_t examples, rows, width;

  __device__ void operator()(int64_t row, int64_t column, int count) const {
    const int64_t example = row / rows, place = row % rows, parent = parents[example];
    if (place >= *length || parent < 0 || parent >= examples) return;
    StoreEight(LoadEight(x + (parent * rows + place) * width + column, count),
               y + row * width + column, count);
  }
};

}  // namespace

std::optional<BoundKernel> cuda_take_rows(const OpCall& call) {
  const TensorType x = call.inputs[0];
  BoundKernel kernel;
  kernel.run = [x](const KernelArguments& arguments) {
    WithActivation(x.dtype, [&](auto type) {
      using T = decltype(type);
      Rowwise(arguments, x.shape[0] * x.shape[1], x.shape[2],
              TakeRows<T>{Input<T>(arguments, 0), Input<int32_t>(arguments, 1),
                          Input<int32_t>(arguments, 2), Output<T>(arguments, 0), x.shape[0],
                          x.shape[1], x.shape[2]});
    });
  };
  return kernel;
}

}  // namespace syntra
