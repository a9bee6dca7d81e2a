// SPDX-License-Identifier: Apache-2.0
// head_matmul: y[.., h, :] = x[.., h, :] W (or W_h), and its gradient. A shared W is one product
// over rows and heads; otherwise the heads are a batch of products of strided operands.
#include <memory>

#include "kernels/converted.h"
#include "kernels/cuda/copy.h"
#include "kernels/cuda/gemm.h"
#include "kernels/operands.h"

namespace syntra {
namespace {

using gpu::Gemm;
using gpu::GemmBatch;

struct HeadShape {
  int64_t rows, heads, in, out;
  DType dtype;
  bool shared;

  explicit HeadShape(const OpCall& call)
      : rows(call.inputs[0].shape.rows()),
        heads(call.attributes.Int("heads")),
        in(call.inputs[1].shape[-2]),
        out(call.inputs[1].shape[-1]),
        dtype(call.inputs[0].dtype),
        shared(call.inputs[1].shape.rank() == 2) {}

  // x W (or dy W^T): [rows of one head, from] to [.., to].
  Gemm Product(int64_t from, int64_t to, bool transpose_w, bool accumulate) const {
    GemmProblem problem{.m = rows,
                        .n = to,
                        .k = from,
                        .transpose_b = transpose_w,
                        .ab = dtype,
                        .c = dtype,
                        .accumulate = accumulate};
    if (shared) {
      problem.m = rows * heads;
      return Gemm(problem);
    }
    problem.a_stride = heads * from;
    problem.c_stride = heads * to;
    return Gemm(problem, GemmBatch{heads, from, in * out, to});
  }

  Gemm WeightGradient(bool accumulate) const {
    GemmProblem problem{
        .m = in, .n = out, .k = rows, .transpose_a = true, .ab = dtype, .accumulate = accumulate};
    if (shared) {
      problem.k = rows * heads;
      return Gemm(problem);
    }
    problem.a_stride = heads * in;
    problem.b_stride = heads * out;
    return Gemm(problem, GemmBatch{heads, in, out, in * out});
  }
};

struct Products {
  Converted weight;
  Gemm y, dx, dweight;
  size_t scratch_offset;
};

BoundKernel Bind(const OpCall& call, const HeadShape& shape, Gemm y, Gemm dx, Gemm dweight) {
  BoundKernel kernel;
  WorkspaceLayout layout;
  Converted weight(call.inputs[1], shape.dtype, cuda_copy, layout);
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
  if (!IsActivation(call.inputs[0]) || !IsActivation(call.inputs[1])) return std::nullopt;
  const HeadShape shape(call);
  return Bind(call, shape, shape.Product(shape.in, shape.out, false, Accumulates(call, 0)), {}, {});
}

std::optional<BoundKernel> cuda_head_matmul_grad(const OpCall& call) {
  if (!IsActivation(call.inputs[0]) || !IsActivation(call.inputs[1])) return std::nullopt;
  const HeadShape shape(call);
  Gemm dx, dweight;
  if (call.outputs[0].present()) {
    dx = shape.Product(shape.out, shape.in, true, Accumulates(call, 0));
  }
  if (call.outputs[1].present()) dweight = shape.WeightGradient(Accumulates(call, 1));
  return Bind(call, shape, {}, std::move(dx), std::move(dweight));
}

}  // namespace syntra
