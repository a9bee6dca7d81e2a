// SPDX-License-Identifier: Apache-2.0
// batch_matmul: each thread computes whole products. Operands of another element type than the
// product's are first converted into the workspace.
#include "kernels/batch_matmul_call.h"

#include <memory>

#include "kernels/converted.h"
#include "kernels/cpu/copy.h"
#include "kernels/cpu/gemm_batch.h"

namespace syntra {
namespace {

struct Batch {
  Converted a, b;
  Products products;
  size_t scratch_offset;
};

ProductLoop LoopOf(const BatchMatmulCall& batch) {
  const size_t ab = SizeOf(batch.problem.ab), c = SizeOf(batch.problem.c);
  return {
      .outer = batch.outer,
      .inner = batch.heads(),
      .outer_strides = {batch.a.outer_stride() * ab, batch.b.outer_stride() * ab,
                        batch.c.outer_stride() * c},
      .inner_strides = {batch.a.head_stride() * ab, batch.b.head_stride() * ab,
                        batch.c.head_stride() * c},
  };
}

}  // namespace

std::optional<BoundKernel> cpu_batch_matmul(const OpCall& call) {
  const BatchMatmulCall batch = BatchMatmulCall::Of(call);
  WorkspaceLayout layout;
  Converted a(call.inputs[0], batch.problem.ab, cpu_copy, layout);
  Converted b(call.inputs[1], batch.problem.ab, cpu_copy, layout);
  Products products(batch.problem, LoopOf(batch));
  BoundKernel kernel;
  kernel.accumulates = true;
  const size_t scratch_offset = layout.Place(products.workspace_bytes());
  kernel.workspace_bytes = layout.bytes();
  const auto bound = std::make_shared<const Batch>(
      Batch{std::move(a), std::move(b), std::move(products), scratch_offset});
  kernel.run = [bound](const KernelArguments& arguments) {
    bound->products.Run(bound->a.Run(arguments, 0), bound->b.Run(arguments, 1),
                        arguments.outputs[0], arguments.workspace + bound->scratch_offset);
  };
  return kernel;
}

}  // namespace syntra
