// SPDX-License-Identifier: Apache-2.0
// gated_gelu and its gradient, element by element.
#include "kernels/cuda/gated_gelu.h"

namespace syntra {
namespace {

using namespace gpu;

template <typename Call>
struct Unmasked {
  Call call;

  __device__ void operator()(int64_t i, int count) const {
    call.At(i, count, [](Eight&) {});
  }
};

// Runs make(type, arguments) for all elements.
template <typename Make>
BoundKernel BindUnmasked(const OpCall& call, const Make& make) {
  BoundKernel kernel;
  kernel.accumulates = true;
  kernel.run = [x = call.inputs[0], make](const KernelArguments& arguments) {
    WithActivation(x.dtype, [&](auto type) {
      Elementwise(arguments, x.shape.size(), Unmasked{make(type, arguments)});
    });
  };
  return kernel;
}

}  // namespace

std::optional<BoundKernel> cuda_gated_gelu(const OpCall& call) {
  return BindUnmasked(call, ForwardOf(call));
}

std::optional<BoundKernel> cuda_gated_gelu_grad(const OpCall& call) {
  return BindUnmasked(call, GradientOf(call));
}

}  // namespace syntra
