// SPDX-License-Identifier: Apache-2.0
// copy: y = x, between f32 and bf16 in either direction; reshape, as elements keep their order;
// store, which copies to memory outside the program.
#include "kernels/cuda/copy.h"

#include "kernels/cuda/launch.h"
#include "kernels/operands.h"

namespace syntra {
namespace {

using namespace gpu;

template <typename From, typename To>
struct Copy {
  const From* x;
  To* y;
  bool accumulate;

  __device__ void operator()(int64_t i, int count) const {
    StoreResult(LoadEight(x + i, count), y + i, count, accumulate);
  }
};

}  // namespace

std::optional<BoundKernel> cuda_copy(const OpCall& call) {
  const TensorType x = call.inputs[0], y = call.outputs[0];
  BoundKernel kernel;
  kernel.accumulates = true;
  kernel.run = [x, y, accumulate = Accumulates(call, 0)](const KernelArguments& arguments) {
    WithActivation(x.dtype, [&](auto from) {
      WithActivation(y.dtype, [&](auto to) {
        using From = decltype(from);
        using To = decltype(to);
        Elementwise(
            arguments, x.shape.size(),
            Copy<From, To>{Input<From>(arguments, 0), Output<To>(arguments, 0), accumulate});
      });
    });
  };
  return kernel;
}

std::optional<BoundKernel> cuda_reshape(const OpCall& call) { return cuda_copy(call); }

std::optional<BoundKernel> cuda_store(const OpCall& call) { return cuda_copy(call); }

}  // namespace syntra
