// SPDX-License-Identifier: Apache-2.0
// shared_matmul and its gradient with oneDNN: a product for each example and group. The examples'
// parts of the gradient of w are added one after the other.
#include <memory>

#include "kernels/converted.h"
#include "kernels/cpu/copy.h"
#include "kernels/cpu/gemm_batch.h"
#include "kernels/shared_matmul_call.h"

namespace syntra {
namespace {

struct Mixing {
  Converted w;
  Products products;
  size_t scratch_offset;
};

struct Gradient {
  Products first, next;  // the examples after the first add to its result
  int64_t batch;
  size_t a_bytes, c_bytes;  // from one example to the next

  void Run(const KernelArguments& arguments) const {
    for (int64_t b = 0; b < batch; ++b) {
      (b == 0 ? first : next)
          .Run(Input<std::byte>(arguments, 0) + b * a_bytes,
               Input<std::byte>(arguments, 1) + b * c_bytes, arguments.outputs[0],
               arguments.workspace);
    }
  }
};

}  // namespace

std::optional<BoundKernel> cpu_shared_matmul(const OpCall& call) {
  const SharedMatmulCall e = SharedMatmulCall::Of(call);
  const size_t size = SizeOf(e.dtype);
  WorkspaceLayout layout;
  Converted w(call.inputs[0], e.dtype, cpu_copy, layout);
  Products products(e.Product(Accumulates(call, 0)),
                    {.outer = e.batch,
                     .inner = e.groups,
                     .outer_strides = {0, e.from * e.width() * size, e.to * e.width() * size},
                     .inner_strides = {e.to * e.from * size, e.columns * size, e.columns * size}});
  BoundKernel kernel;
  kernel.accumulates = true;
  const size_t scratch_offset = layout.Place(products.workspace_bytes());
  kernel.workspace_bytes = layout.bytes();
  const auto mixing =
      std::make_shared<const Mixing>(Mixing{std::move(w), std::move(products), scratch_offset});
  kernel.run = [mixing](const KernelArguments& arguments) {
    mixing->products.Run(mixing->w.Run(arguments, 0), arguments.inputs[1], arguments.outputs[0],
                         arguments.workspace + mixing->scratch_offset);
  };
  return kernel;
}

std::optional<BoundKernel> cpu_shared_matmul_grad(const OpCall& call) {
  const SharedMatmulCall e = SharedMatmulCall::OfGrad(call);
  const size_t size = SizeOf(e.dtype);
  const ProductLoop groups{
      .inner = e.groups,
      .inner_strides = {e.columns * size, e.columns * size, e.to * e.from * sizeof(float)}};
  const auto gradient = std::make_shared<const Gradient>(
      Gradient{Products(e.GradientProduct(Accumulates(call, 0)), groups),
               Products(e.GradientProduct(true), groups), e.batch, e.to * e.width() * size,
               e.from * e.width() * size});
  BoundKernel kernel;
  kernel.accumulates = true;
  kernel.workspace_bytes =
      std::max(gradient->first.workspace_bytes(), gradient->next.workspace_bytes());
  kernel.run = [gradient](const KernelArguments& arguments) { gradient->Run(arguments); };
  return kernel;
}

}  // namespace syntra
