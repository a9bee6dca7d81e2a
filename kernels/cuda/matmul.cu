// SPDX-License-Identifier: Apache-2.0
// matmul with cuBLASLt. Operands of another element type than the product's are
// first converted into the workspace.
#include "kernels/cuda/matmul.h"

#include <memory>

#include "kernels/converted.h"
#include "kernels/cuda/bit_mask.h"
#include "kernels/cuda/copy.h"
#include "kernels/cuda/gemm.h"

namespace syntra {
namespace {

struct Product {
  Converted a, b;
  gpu::Gemm gemm;
  size_t scratch_offset;
};

}  // namespace

BoundKernel gpu::BindMatmul(const OpCall& call, const MatmulCall& matmul) {
  GemmProblem problem = matmul.problem;
  const gpu::GemmBatch batch{matmul.groups, problem.m * problem.k, problem.k * problem.n,
                             problem.m * problem.n};
  const bool masks = HasMask(problem.epilogue) && gpu::Gemm::Offers(problem, batch);
  if (!masks) problem.epilogue = WithoutMask(problem.epilogue);
  BoundKernel kernel;
  WorkspaceLayout layout;
  Converted a(call.inputs[0], problem.ab, cuda_copy, layout);
  Converted b(call.inputs[1], problem.ab, cuda_copy, layout);
  gpu::Gemm gemm(problem, batch);
  const size_t scratch_offset = layout.Place(gemm.workspace_bytes());
  kernel.workspace_bytes = layout.bytes();
  const auto product = std::make_shared<const Product>(
      Product{std::move(a), std::move(b), std::move(gemm), scratch_offset});
  kernel.accumulates = matmul.problem.epilogue == Epilogue::kNone;
  kernel.run = [product, matmul, masks, type = call.outputs[0]](const KernelArguments& arguments) {
    void *c = arguments.outputs[0], *mask = matmul.MaskIn(arguments);
    product->gemm.Run(arguments, product->a.Run(arguments, 0), product->b.Run(arguments, 1), c,
                      arguments.workspace + product->scratch_offset, masks ? mask : nullptr);
    if (masks || !mask) return;
    if (matmul.problem.epilogue == Epilogue::kReluMask) {
      gpu::WriteMask(arguments, type, c, mask);
    } else {
      gpu::ApplyMask(arguments, type, mask, c);
    }
  };
  return kernel;
}

std::optional<BoundKernel> cuda_matmul(const OpCall& call) {
  return gpu::BindMatmul(call, MatmulCall::Of(call));
}

}  // namespace syntra
