// SPDX-License-Identifier: Apache-2.0
// matmul with cuBLASLt. Operands of another element type than the product's are first converted
// into the workspace.
#include "kernels/cuda/matmul.h"

#include <map>
#include <memory>
#include <tuple>

#include "kernels/bit_mask.h"
#include "kernels/converted.h"
#include "kernels/cuda/bit_mask.h"
#include "kernels/cuda/copy.h"
#include "kernels/cuda/gemm.h"
#include "kernels/cuda/mask_check.h"
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

// Of which epilogues, with which types of operands and result, the library's masks are ours, as far
// as that was tried.
std::map<std::tuple<Epilogue, DType, DType>, bool> tried_masks;

bool HasOurMask(const GemmProblem& problem) {
  const std::tuple kind(problem.epilogue, problem.ab, problem.c);
  if (!tried_masks.contains(kind)) {
    tried_masks[kind] = gpu::LibraryMaskIsOurs(problem.epilogue, problem.ab, problem.c);
  }
  return tried_masks.at(kind);
}

bool Offers(const GemmProblem& problem, const gpu::GemmBatch& batch) {
  return gpu::Gemm::Offers(problem, batch) && (!HasMask(problem.epilogue) || HasOurMask(problem));
}

// The problem's epilogue, or what the library offers of it: it promises none. What is left is done
// by our own kernels. A ReLU is then its own mask, applied.
Epilogue OfferedEpilogue(GemmProblem problem, const gpu::GemmBatch& batch) {
  while (problem.epilogue != Epilogue::kNone && !Offers(problem, batch)) {
    problem.epilogue = HasMask(problem.epilogue) ? WithoutMask(problem.epilogue) : Epilogue::kNone;
  }
  return problem.epilogue;
}

}  // namespace

BoundKernel gpu::BindMatmul(const OpCall& call, const MatmulCall& matmul) {
  GemmProblem problem = matmul.problem;
  const gpu::GemmBatch batch{matmul.groups, problem.m * problem.k, problem.k * problem.n,
                             problem.m * problem.n};
  // The library may sum in another order where there is a mask. Without need of one it is made all
  // the same, so that what is computed again, then with a mask, has the same bits.
  const bool is_unneeded = problem.epilogue == Epilogue::kRelu;
  if (is_unneeded) problem.epilogue = Epilogue::kReluMask;
  const Epilogue wanted = problem.epilogue, offered = OfferedEpilogue(problem, batch);
  problem.epilogue = offered;
  BoundKernel kernel;
  WorkspaceLayout layout;
  const bool spares_mask = is_unneeded && offered != Epilogue::kRelu;
  const size_t mask_offset =
      layout.Place(spares_mask ? MaskStride(problem.n) * problem.m * matmul.groups : 0);
  Converted a(call.inputs[0], problem.ab, cuda_copy, layout);
  OperandB b(call, matmul, layout);
  gpu::Gemm gemm(problem, batch);
  const size_t scratch_offset = layout.Place(gemm.workspace_bytes());
  kernel.workspace_bytes = layout.bytes();
  const auto product = std::make_shared<const Product>(
      Product{std::move(a), std::move(b), std::move(gemm), scratch_offset});
  kernel.accumulates = wanted == Epilogue::kNone;
  kernel.run = [product, matmul, wanted, offered, spares_mask, mask_offset,
                type = call.outputs[0]](const KernelArguments& arguments) {
    void* c = arguments.outputs[0];
    void* mask = spares_mask ? arguments.workspace + mask_offset : matmul.MaskIn(arguments);
    product->gemm.Run(arguments, product->a.Run(arguments, 0), product->b.Run(arguments), c,
                      arguments.workspace + product->scratch_offset,
                      HasMask(offered) ? mask : nullptr);
    if (offered == wanted || !mask) return;
    if (wanted == Epilogue::kReluMask) gpu::WriteMask(arguments, type, c, mask);
    if (offered == Epilogue::kNone) gpu::ApplyMask(arguments, type, mask, c);
  };
  return kernel;
}

std::optional<BoundKernel> cuda_matmul(const OpCall& call) {
  return gpu::BindMatmul(call, MatmulCall::Of(call));
}

}  // namespace syntra
