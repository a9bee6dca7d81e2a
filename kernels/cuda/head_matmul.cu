// SPDX-License-Identifier: Apache-2.0
// head_matmul: y[.., h, :] = x[.., h, :] W (or W_h), and its gradient. A shared W is one product
// over rows and heads; otherwise the heads are a batch of products of strided operands.
#include <memory>

#include "kernels/converted.h"
#include "kernels/cuda/copy.h"
#include "kernels/cuda/gemm.h"
#include "kernels/head_matmul_call.h"
#include "kernels/operands.h"

namespace syntra {
namespace {

using gpu::Gemm;
using gpu::GemmBatch;

// x W (or dy W^T): from `from` columns of a head to `to`.
Gemm Product(const HeadMatmulCall& e, int64_t from, int64_t to, bool transpose_w, bool accumulate) {
  const GemmProblem problem = e.Product(from, to, transpose_w, accumulate);
  return e.shared ? Gemm(problem) : Gemm(problem, GemmBatch{e.heads, from, e.in * e.out, to});
}

Gemm WeightGradient(const HeadMatmulCall& e, bool accumulate) {
  const GemmProblem problem = e.WeightGradient(accumulate);
  return e.shared ? Gemm(problem) : Gemm(problem, GemmBatch{e.heads, e.in, e.out, e.in * e.out});
}

struct Products {
  Converted weight;
  Gemm y, dx, dweight;
  size_t scratch_offset;
};

BoundKernel Bind(const OpCall& call, Gemm y, Gemm dx, Gemm dweight) {
  BoundKernel kernel;
  WorkspaceLayout layout;
  Converted weight(call.inputs[1], call.inputs[0].dtype, cuda_copy, layout);
  size_t scratch = 0;
  for (const Gemm* gemm : {&y, &dx, &dweight}) {
    if (gemm->bound()) scratch = std::max(scratch, gemm->workspace_bytes());
  }
  kernel.accumulates = true;
  const size_t scratch_offset = layout.Place(scratch);
  kernel.workspace_bytes = layout.bytes();
  const auto products = std::make_shared<const Products>(
      Products{std::move(weight), std::move(y), std::move(dx), std::move(dweight), scratch_offset});
  kernel.run = [products](const KernelArguments& arguments) {
    const Products& p = *products;
    const auto& [in, out] = std::tie(arguments.inputs, arguments.outputs);
    std::byte* scratch = arguments.workspace + p.scratch_offset;
    const void* weight = nullptr;
    if (p.y.bound() || p.dx.bound()) weight = p.weight.Run(arguments, 1);
    if (p.y.bound()) p.y.Run(arguments, in[0], weight, out[0], scratch);
    if (p.dx.bound()) p.dx.Run(arguments, in[2], weight, out[0], scratch);
    if (p.dweight.bound()) p.dweight.Run(arguments, in[0], in[2], out[1], scratch);
  };
  return kernel;
}

}  // namespace

std::optional<BoundKernel> cuda_head_matmul(const OpCall& call) {
  const HeadMatmulCall e = HeadMatmulCall::Of(call);
  return Bind(call, Product(e, e.in, e.out, false, Accumulates(call, 0)), {}, {});
}

std::optional<BoundKernel> cuda_head_matmul_grad(const OpCall& call) {
  const HeadMatmulCall e = HeadMatmulCall::Of(call);
  Gemm dx, dweight;
  if (call.outputs[0].present()) dx = Product(e, e.out, e.in, true, Accumulates(call, 0));
  if (call.outputs[1].present()) dweight = WeightGradient(e, Accumulates(call, 1));
  return Bind(call, {}, std::move(dx), std::move(dweight));
}

}  // namespace syntra
