// SPDX-License-Identifier: Apache-2.0
// slice: the first `length` entries along an axis. Its gradient is zero for the other entries.
#include "kernels/cuda/rows.h"
#include "kernels/operands.h"

namespace syntra {
namespace {

using namespace gpu;

// Copies the first elements of each row. The remaining elements of a wider target row become zero.
template <typename T>
struct CopyRows {
  const T* from;
  T* to;
  int64_t from_width, to_width;
  bool accumulate;

  __device__ void operator()(int64_t row, int64_t column, int count) const {
    const int64_t left = from_width - column;
    const int kept = static_cast<int>(left < 0 ? 0 : left < count ? left : count);
    StoreResult(LoadEight(from + row * from_width + column, kept), to + row * to_width + column,
                count, accumulate);
  }
};

}  // namespace

std::optional<BoundKernel> cuda_slice(const OpCall& call) {
  const TensorType from = call.inputs[0], to = call.outputs[0];
  if (!IsActivation(from) || to.dtype != from.dtype) return std::nullopt;
  const auto given = static_cast<int>(call.attributes.Int("axis"));
  const int axis = given < 0 ? given + from.shape.rank() : given;
  int64_t rows = 1, inner = 1;
  for (int i = 0; i < axis; ++i) rows *= from.shape[i];
  for (int i = axis + 1; i < from.shape.rank(); ++i) inner *= from.shape[i];
  const int64_t from_width = from.shape[axis] * inner, to_width = to.shape[axis] * inner;
  BoundKernel kernel;
  kernel.accumulates = true;
  kernel.run = [=, accumulate = Accumulates(call, 0)](const KernelArguments& arguments) {
    WithActivation(from.dtype, [&](auto type) {
      using T = decltype(type);
      Rowwise(arguments, rows, to_width,
              CopyRows<T>{Input<T>(arguments, 0), Output<T>(arguments, 0), from_width, to_width,
                          accumulate});
    });
  };
  return kernel;
}

std::optional<BoundKernel> cuda_slice_grad(const OpCall& call) { return cuda_slice(call); }

}  // namespace syntra
