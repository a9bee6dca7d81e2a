// SPDX-License-Identifier: Apache-2.0
// gated_gelu_dropout: the gated GELU times a random mask, per element or shared by all positions of
// an example. Its gradient masks dy and is then that of gated_gelu.
#include "kernels/cuda/gated_gelu.h"
#include "kernels/cuda/noise.h"
#include "kernels/cuda/rows.h"

namespace syntra {
namespace {

using namespace gpu;

template <typename Call>
struct Masked {
  Call call;
  KeyedMask mask;

  __device__ void operator()(int64_t row, int64_t column, int count) const {
    call.At(row * mask.width + column, count,
            [&](Eight& values) { mask.Apply(values, row, column); });
  }
};

// Runs make(type, arguments) for all rows, with the mask of operand `keys`.
template <typename Make>
BoundKernel BindMasked(const OpCall& call, int keys, const Make& make) {
  BoundKernel kernel;
  kernel.accumulates = true;
  kernel.run = [x = call.inputs[0], unkeyed = TensorMask::Of(call.attributes, call.inputs[0].shape),
                keys, make](const KernelArguments& arguments) {
    const KeyedMask mask{unkeyed, Input<int32_t>(arguments, keys)};
    WithActivation(x.dtype, [&](auto type) {
      Rowwise(arguments, x.shape.rows(), mask.width, Masked{make(type, arguments), mask});
    });
  };
  return kernel;
}

}  // namespace

std::optional<BoundKernel> cuda_gated_gelu_dropout(const OpCall& call) {
  return BindMasked(call, 2, ForwardOf(call));
}

std::optional<BoundKernel> cuda_gated_gelu_dropout_grad(const OpCall& call) {
  return BindMasked(call, 3, GradientOf(call));
}

}  // namespace syntra
