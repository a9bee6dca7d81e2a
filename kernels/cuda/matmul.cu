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
    return joined_.Join(arguments, 1,
                        [&](auto... copies) { gpu::RunCopies(arguments, copies...); });
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

// The part of the epilogue that the library does: at most a ReLU, which it guarantees for no
// problem. Our own kernels do the rest.
Epilogue LibraryEpilogue(GemmProblem problem, const gpu::GemmBatch& batch) {
  problem.epilogue = WithoutMask(problem.epilogue);
  return gpu::Gemm::Offers(problem, batch) ? problem.epilogue : Epilogue::kNone;
}

}  // namespace

BoundKernel gpu::BindMatmul(const OpCall& call, const MatmulCall& matmul) {
  GemmProblem problem = matmul.problem;
  const gpu::GemmBatch batch{matmul.groups, problem.m * problem.k, problem.k * problem.n,
                             problem.m * problem.n};
  const Epilogue wanted = problem.epilogue;
  problem.epilogue = LibraryEpilogue(problem, batch);
  const bool rectifies =
      WithoutMask(wanted) == Epilogue::kRelu && problem.epilogue != Epilogue::kRelu;
  BoundKernel kernel;
  WorkspaceLayout layout;
  Converted a(call.inputs[0], problem.ab, cuda_copy, layout);
  OperandB b(call, matmul, layout);
  gpu::Gemm gemm(problem, batch);
  const size_t scratch_offset = layout.Place(gemm.workspace_bytes());
  kernel.workspace_bytes = layout.bytes();
  const auto product = std::make_shared<const Product>(
      Product{std::move(a), std::move(b), std::move(gemm), scratch_offset});
  kernel.accumulates = wanted == Epilogue::kNone;
  kernel.run = [product, matmul, wanted, rectifies,
                type = call.outputs[0]](const KernelArguments& arguments) {
    void *c = arguments.outputs[0], *mask = matmul.MaskIn(arguments);
    product->gemm.Run(arguments, product->a.Run(arguments, 0), product->b.Run(arguments), c,
                      arguments.workspace + product->scratch_offset);
    if (rectifies) gpu::Rectify(arguments, type, c);
    if (wanted == Epilogue::kReluMask) gpu::WriteMask(arguments, type, c, mask);
    if (wanted == Epilogue::kMask) gpu::ApplyMask(arguments, type, mask, c);
  };
  return kernel;
}

std::optional<BoundKernel> cuda_matmul(const OpCall& call) {
  return gpu::BindMatmul(call, MatmulCall::Of(call));
}

}  // namespace syntra
