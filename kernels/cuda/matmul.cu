// SPDX-License-Identifier: Apache-2.0
// matmul, matmul_relu and masked_matmul with cuBLASLt or, where it is faster, our own kernel.
// Operands of another element type than the product's are first converted into the workspace.
#include "kernels/cuda/matmul.h"

#include <fmt/format.h>

#include <memory>
#include <string>
#include <utility>

#include "kernels/converted.h"
#include "kernels/cuda/algorithms.h"
#include "kernels/cuda/bit_mask.h"
#include "kernels/cuda/copy.h"
#include "kernels/cuda/gemm.h"
#include "kernels/cuda/matmul_hopper.h"
#include "kernels/cuda/strided.h"
#include "kernels/joined_matrix.h"
#include "kernels/matmul_relu_call.h"

namespace syntra {
namespace {

// B where the product wants it: in place, converted, or its parts side by side in the workspace.
class OperandB {
 public:
  OperandB(const OpCall& call, const MatmulCall& matmul, WorkspaceLayout& layout) {
    const std::span parts = std::span(call.inputs).subspan(1, matmul.b_parts);
    if (matmul.b_parts > 1) {
      joined_ = JoinedMatrix(parts, matmul.problem.ab, layout);
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
  JoinedMatrix joined_;
};

struct Operands {
  Converted a;
  OperandB b;

  Operands(const OpCall& call, const MatmulCall& matmul, WorkspaceLayout& layout)
      : a(call.inputs[0], matmul.problem.ab, cuda_copy, layout), b(call, matmul, layout) {}
};

struct Product {
  Operands operands;
  gpu::Gemm gemm;
  size_t scratch_offset;
};

BoundKernel BindOnHopper(const OpCall& call, const MatmulCall& matmul) {
  BoundKernel kernel;
  WorkspaceLayout layout;
  const auto operands = std::make_shared<const Operands>(call, matmul, layout);
  kernel.workspace_bytes = layout.bytes();
  kernel.run = [operands, matmul](const KernelArguments& arguments) {
    gpu::HopperMatmul(arguments, matmul.problem,
                      static_cast<const BFloat16*>(operands->a.Run(arguments, 0)),
                      static_cast<const BFloat16*>(operands->b.Run(arguments)),
                      static_cast<BFloat16*>(arguments.outputs[0]), matmul.MaskIn(arguments));
  };
  return kernel;
}

// The library's product, and another kernel for its epilogue. The library has epilogues, too, but
// its ReLU turns NaN into 0, and those with masks are slower (kernels/README.md).
BoundKernel BindLibrary(const OpCall& call, const MatmulCall& matmul) {
  GemmProblem problem = matmul.problem;
  const Epilogue epilogue = std::exchange(problem.epilogue, Epilogue::kNone);
  BoundKernel kernel;
  WorkspaceLayout layout;
  Operands operands(call, matmul, layout);
  gpu::Gemm gemm(problem);
  const size_t scratch_offset = layout.Place(gemm.workspace_bytes());
  kernel.workspace_bytes = layout.bytes();
  const auto product = std::make_shared<const Product>(
      Product{std::move(operands), std::move(gemm), scratch_offset});
  kernel.accumulates = epilogue == Epilogue::kNone;
  kernel.run = [product, matmul, epilogue,
                type = call.outputs[0]](const KernelArguments& arguments) {
    void *c = arguments.outputs[0], *mask = matmul.MaskIn(arguments);
    product->gemm.Run(arguments, product->operands.a.Run(arguments, 0),
                      product->operands.b.Run(arguments), c,
                      arguments.workspace + product->scratch_offset);
    if (epilogue == Epilogue::kNone) return;
    if (epilogue == Epilogue::kMask) return gpu::ApplyMask(arguments, type, mask, c);
    gpu::Rectify(arguments, type, c, mask);
  };
  return kernel;
}

// The problem, for people and as a key.
std::string NameOf(const GemmProblem& problem) {
  const char* epilogue = problem.epilogue == Epilogue::kMask       ? "masked"
                         : problem.epilogue == Epilogue::kReluMask ? "relu and mask"
                                                                   : "relu";
  return fmt::format("{} x {} x {}, {}", problem.m, problem.n, problem.k, epilogue);
}

}  // namespace

BoundKernel gpu::BindMatmul(const OpCall& call, const MatmulCall& matmul) {
  if (!HopperServesMatmul(matmul)) return BindLibrary(call, matmul);
  return FastestKernel(
      call, NameOf(matmul.problem),
      {{"library", BindLibrary(call, matmul)},
       {fmt::format("own kernel {}", kHopperMatmulVersion), BindOnHopper(call, matmul)}});
}

std::optional<BoundKernel> cuda_matmul(const OpCall& call) {
  return gpu::BindMatmul(call, MatmulCall::Of(call));
}
std::optional<BoundKernel> cuda_masked_matmul(const OpCall& call) {
  return gpu::BindMatmul(call, MatmulCall::OfMasked(call));
}
std::optional<BoundKernel> cuda_matmul_relu(const OpCall& call) {
  return BindMatmulRelu(
      call, [](const OpCall& each) { return gpu::BindMatmul(each, MatmulCall::OfRelu(each)); });
}

}  // namespace syntra
