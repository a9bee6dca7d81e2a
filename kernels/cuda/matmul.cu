// SPDX-License-Identifier: Apache-2.0
// matmul with cuBLASLt. Operands of another element type than the product's are first converted
// into the workspace.
#include "kernels/cuda/matmul.h"

#include <memory>

#include "kernels/converted.h"
#include "kernels/cuda/bit_mask.h"
#include "kernels/cuda/copy.h"
#include "kernels/cuda/gemm.h"
#include "kernels/cuda/strided.h"
#include "kernels/joined.h"

namespace syntra {
namespace {

// B where the product wants it: in place, converted, or its parts side by side in the workspace.
class OperandB {
 public:
  OperandB(const OpCall& call, const MatmulCall& matmul, WorkspaceLayout& layout) {
    const std::span parts = std::span(call.inputs).subspan(1, matmul.b_parts);
    if (matmul.b_parts > 1) {
      joined_ = Joined(parts, matmul.problem.ab, layout);
    } else {
      converted_.emplace(parts[0], matmul.problem.ab, cuda_copy, layout);
    }
  }

  const void* Run(const KernelArguments& arguments) const {
    if (converted_) return converted_->Run(arguments, 1);
    return joined_.Join(arguments, 1, [&](const StridedCall& copy, void* to, const void* from) {
      gpu::RunStrided(arguments, copy, to, from, nullptr);
    });
  }

 private:
  std::optional<Converted> converted_;
  Joined joined_;
};

struct Product {
  Converted a;
  OperandB b;
  gpu::Gemm gemm;
  size_t scratch_offset;
};

}  // namespace

BoundKernel gpu::BindMatmul(const OpCall& call, const MatmulCall& matmul) {
  GemmProblem problem = matmul.problem;
  const gpu::GemmBatch batch{matmul.groups, problem.m * problem.k, problem.k * problem.n,
                             problem.m * problem.n};
  // The library may sum in another order where there is a mask. Without need of one it is made all
  // the same, so that what is computed again, then with a mask, has the same bits.
  const bool is_unneeded = problem.epilogue == Epilogue::kRelu;
  if (is_unneeded) problem.epilogue = Epilogue::kReluMask;
  const bool masks = HasMask(problem.epilogue) && gpu::Gemm::Offers(problem, batch);
  if (!masks) problem.epilogue = WithoutMask(problem.epilogue);
  BoundKernel kernel;
  WorkspaceLayout layout;
  const size_t mask_offset =
      layout.Place(is_unneeded && masks ? problem.m * problem.n * matmul.groups / 8 : 0);
  Converted a(call.inputs[0], problem.ab, cuda_copy, layout);
  OperandB b(call, matmul, layout);
  gpu::Gemm gemm(problem, batch);
  const size_t scratch_offset = layout.Place(gemm.workspace_bytes());
  kernel.workspace_bytes = layout.bytes();
  const auto product = std::make_shared<const Product>(
      Product{std::move(a), std::move(b), std::move(gemm), scratch_offset});
  kernel.accumulates = matmul.problem.epilogue == Epilogue::kNone;
  kernel.run = [product, matmul, masks, is_unneeded, mask_offset,
                type = call.outputs[0]](const KernelArguments& arguments) {
    void* c = arguments.outputs[0];
    void* mask = is_unneeded ? arguments.workspace + mask_offset : matmul.MaskIn(arguments);
    product->gemm.Run(arguments, product->a.Run(arguments, 0), product->b.Run(arguments), c,
                      arguments.workspace + product->scratch_offset, masks ? mask : nullptr);
    if (masks || is_unneeded || !mask) return;
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
