// SPDX-License-Identifier: Apache-2.0
// head_matmul: y[.., h, :] = x[.., h, :] W (or W_h), and its gradient. A shared W is one product
// over rows and heads; otherwise each head is a product of strided operands, heads in parallel.
#include <algorithm>
#include <memory>

#include "kernels/converted.h"
#include "kernels/cpu/copy.h"
#include "kernels/cpu/gemm_batch.h"
#include "kernels/cpu/matmul.h"
#include "kernels/operands.h"

namespace syntra {
namespace {

struct HeadShape {
  int64_t rows, heads, in, out;
  DType dtype;

  explicit HeadShape(const OpCall& call)
      : rows(call.inputs[0].shape.rows()),
        heads(call.attributes.Int("heads")),
        in(call.inputs[1].shape[-2]),
        out(call.inputs[1].shape[-1]),
        dtype(call.inputs[0].dtype) {}

  TensorType x() const { return {dtype, {rows * heads, in}}; }
  TensorType y() const { return {dtype, {rows * heads, out}}; }
};

BoundKernel SharedProduct(const TensorType& a, const TensorType& b, const TensorType& c,
                          bool transpose_a, bool transpose_b, bool accumulate) {
  return *cpu_matmul(
      {{{"transpose_a", transpose_a}, {"transpose_b", transpose_b}}, {a, b}, {c}, {accumulate}});
}

Products HeadProducts(const GemmProblem& problem, int64_t heads, ProductLoop::Strides strides) {
  return Products(problem, {.inner = heads, .inner_strides = strides});
}

struct PerHead {
  Converted weight;
  Products products;
  size_t scratch_offset;
};

BoundKernel BindPerHead(const OpCall& call, const HeadShape& shape) {
  const size_t size = SizeOf(shape.dtype);
  GemmProblem problem;
  problem.m = shape.rows;
  problem.k = shape.in;
  problem.n = shape.out;
  problem.a_stride = shape.heads * shape.in;
  problem.c_stride = shape.heads * shape.out;
  problem.ab = problem.c = shape.dtype;
  problem.accumulate = Accumulates(call, 0);
  BoundKernel kernel;
  WorkspaceLayout layout;
  Converted weight(call.inputs[1], shape.dtype, cpu_copy, layout);
  const auto plan = std::make_shared<const PerHead>(
      PerHead{std::move(weight),
              HeadProducts(problem, shape.heads,
                           {shape.in * size, shape.in * shape.out * size, shape.out * size}),
              layout.bytes()});
  kernel.accumulates = true;
  kernel.workspace_bytes = plan->scratch_offset + plan->products.workspace_bytes();
  kernel.run = [plan](const KernelArguments& arguments) {
    plan->products.Run(arguments.inputs[0], plan->weight.Run(arguments, 1), arguments.outputs[0],
                       arguments.workspace + plan->scratch_offset);
  };
  return kernel;
}

struct PerHeadGrad {
  Converted weight;
  Products dx, dweight;
  size_t scratch_offset = 0;
};

BoundKernel BindPerHeadGrad(const OpCall& call, const HeadShape& shape) {
  const size_t size = SizeOf(shape.dtype);
  GemmProblem to_x;
  to_x.m = shape.rows;
  to_x.k = shape.out;
  to_x.n = shape.in;
  to_x.transpose_b = true;
  to_x.a_stride = shape.heads * shape.out;
  to_x.c_stride = shape.heads * shape.in;
  to_x.ab = to_x.c = shape.dtype;
  to_x.accumulate = Accumulates(call, 0);
  GemmProblem to_weight;
  to_weight.m = shape.in;
  to_weight.k = shape.rows;
  to_weight.n = shape.out;
  to_weight.transpose_a = true;
  to_weight.a_stride = shape.heads * shape.in;
  to_weight.b_stride = shape.heads * shape.out;
  to_weight.ab = shape.dtype;
  to_weight.accumulate = Accumulates(call, 1);
  BoundKernel kernel;
  WorkspaceLayout layout;
  PerHeadGrad grad{Converted(call.inputs[1], shape.dtype, cpu_copy, layout), {}, {}};
  grad.scratch_offset = layout.bytes();
  const size_t weight_elements = shape.in * shape.out;
  if (call.outputs[0].present()) {
    grad.dx = HeadProducts(to_x, shape.heads,
                           {shape.out * size, weight_elements * size, shape.in * size});
  }
  if (call.outputs[1].present()) {
    grad.dweight =
        HeadProducts(to_weight, shape.heads,
                     {shape.in * size, shape.out * size, weight_elements * sizeof(float)});
  }
  const auto plan = std::make_shared<const PerHeadGrad>(std::move(grad));
  kernel.accumulates = true;
  kernel.workspace_bytes =
      plan->scratch_offset + std::max(plan->dx.workspace_bytes(), plan->dweight.workspace_bytes());
  kernel.run = [plan](const KernelArguments& arguments) {
    std::byte* scratch = arguments.workspace + plan->scratch_offset;
    if (plan->dx.bound()) {
      plan->dx.Run(arguments.inputs[2], plan->weight.Run(arguments, 1), arguments.outputs[0],
                   scratch);
    }
    if (plan->dweight.bound()) {
      plan->dweight.Run(arguments.inputs[0], arguments.inputs[2], arguments.outputs[1], scratch);
    }
  };
  return kernel;
}

BoundKernel BindSharedGrad(const OpCall& call, const HeadShape& shape) {
  const TensorType& weight = call.inputs[1];
  BoundKernel dx, dweight, kernel;
  if (call.outputs[0].present()) {
    dx = SharedProduct(shape.y(), weight, shape.x(), false, true, Accumulates(call, 0));
  }
  if (call.outputs[1].present()) {
    dweight = SharedProduct(shape.x(), shape.y(), weight, true, false, Accumulates(call, 1));
  }
  kernel.accumulates = true;
  kernel.workspace_bytes = std::max(dx.workspace_bytes, dweight.workspace_bytes);
  kernel.run = [dx, dweight](const KernelArguments& arguments) {
    const auto run = [&](const BoundKernel& product, int a, int b, int output) {
      if (!product.run) return;
      void* const inputs[] = {arguments.inputs[a], arguments.inputs[b]};
      product.run({inputs, arguments.outputs.subspan(output, 1), arguments.workspace});
    };
    run(dx, 2, 1, 0);
    run(dweight, 0, 2, 1);
  };
  return kernel;
}

}  // namespace

std::optional<BoundKernel> cpu_head_matmul(const OpCall& call) {
  if (!IsActivation(call.inputs[0]) || !IsF32(call.inputs[1])) return std::nullopt;
  const HeadShape shape(call);
  if (call.inputs[1].shape.rank() == 3) return BindPerHead(call, shape);
  return SharedProduct(shape.x(), call.inputs[1], shape.y(), false, false, Accumulates(call, 0));
}

std::optional<BoundKernel> cpu_head_matmul_grad(const OpCall& call) {
  if (!IsActivation(call.inputs[0]) || !IsF32(call.inputs[1])) return std::nullopt;
  const HeadShape shape(call);
  if (call.inputs[1].shape.rank() == 3) return BindPerHeadGrad(call, shape);
  return BindSharedGrad(call, shape);
}

}  // namespace syntra
