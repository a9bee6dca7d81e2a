// SPDX-License-Identifier: Apache-2.0
// batch_matmul with oneDNN. Operands of another element type than the product's are first converted
// into the workspace.
#include <memory>

#include "kernels/converted.h"
#include "kernels/cpu/copy.h"
#include "kernels/cpu/gemm_batch.h"
#include "kernels/matmul_call.h"

namespace syntra {
namespace {

struct Batch {
  Converted a, b;
  Products products;
  size_t scratch_offset;
};

}  // namespace

std::optional<BoundKernel> cpu_batch_matmul(const OpCall& call) {
  const MatmulCall matmul = MatmulCall::OfBatch(call);
  const GemmProblem& problem = matmul.problem;
  const size_t size = SizeOf(problem.ab);
  WorkspaceLayout layout;
  Converted a(call.inputs[0], problem.ab, cpu_copy, layout);
  Converted b(call.inputs[1], problem.ab, cpu_copy, layout);
  Products products(problem,
                    {.inner = matmul.groups,
                     .inner_strides = {problem.m * problem.k * size, problem.k * problem.n * size,
                                       problem.m * problem.n * SizeOf(problem.c)}});
  BoundKernel kernel;
  kernel.accumulates = true;
  const size_t scratch_offset = layout.Place(products.workspace_bytes());
  kernel.workspace_bytes = layout.bytes();
  const auto batch = std::make_shared<const Batch>(
      Batch{std::move(a), std::move(b), std::move(products), scratch_offset});
  kernel.run = [batch](const KernelArguments& arguments) {
    batch->products.Run(batch->a.Run(arguments, 0), batch->b.Run(arguments, 1),
                        arguments.outputs[0], arguments.workspace + batch->scratch_offset);
  };
  return kernel;
}

}  // namespace syntra
