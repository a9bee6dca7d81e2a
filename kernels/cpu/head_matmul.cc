// SPDX-License-Identifier: Apache-2.0
// head_matmul: y[.., h, :] = x[.., h, :] W (or W_h), and its gradient. A shared W is one product
// over rows and heads; otherwise each head is a product of strided operands, heads in parallel.
#include <algorithm>
#include <memory>

#include "kernels/converted.h"
#include "kernels/cpu/copy.h"
#include "kernels/cpu/gemm_batch.h"
#include "kernels/cpu/matmul.h"
#include "kernels/head_matmul_call.h"
#include "kernels/operands.h"

namespace syntra {
namespace {

// x and y as matrices of a row for each head.
TensorType X(const HeadMatmulCall& e) { return {e.dtype, {e.rows * e.heads, e.in}}; }
TensorType Y(const HeadMatmulCall& e) { return {e.dtype, {e.rows * e.heads, e.out}}; }

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

BoundKernel BindPerHead(const OpCall& call, const HeadMatmulCall& e) {
  const size_t size = SizeOf(e.dtype);
  BoundKernel kernel;
  WorkspaceLayout layout;
  Converted weight(call.inputs[1], e.dtype, cpu_copy, layout);
  const auto plan = std::make_shared<const PerHead>(
      PerHead{std::move(weight),
              HeadProducts(e.Product(e.in, e.out, false, Accumulates(call, 0)), e.heads,
                           {e.in * size, e.in * e.out * size, e.out * size}),
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

BoundKernel BindPerHeadGrad(const OpCall& call, const HeadMatmulCall& e) {
  const size_t size = SizeOf(e.dtype);
  BoundKernel kernel;
  WorkspaceLayout layout;
  PerHeadGrad grad{Converted(call.inputs[1], e.dtype, cpu_copy, layout), {}, {}};
  grad.scratch_offset = layout.bytes();
  const size_t weight_elements = e.in * e.out;
  if (call.outputs[0].present()) {
    grad.dx = HeadProducts(e.Product(e.out, e.in, true, Accumulates(call, 0)), e.heads,
                           {e.out * size, weight_elements * size, e.in * size});
  }
  if (call.outputs[1].present()) {
    grad.dweight = HeadProducts(e.WeightGradient(Accumulates(call, 1)), e.heads,
                                {e.in * size, e.out * size, weight_elements * sizeof(float)});
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

BoundKernel BindSharedGrad(const OpCall& call, const HeadMatmulCall& e) {
  const TensorType& weight = call.inputs[1];
  BoundKernel dx, dweight, kernel;
  if (call.outputs[0].present()) {
    dx = SharedProduct(Y(e), weight, X(e), false, true, Accumulates(call, 0));
  }
  if (call.outputs[1].present()) {
    dweight = SharedProduct(X(e), Y(e), weight, true, false, Accumulates(call, 1));
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
  const HeadMatmulCall e = HeadMatmulCall::Of(call);
  if (!e.shared) return BindPerHead(call, e);
  return SharedProduct(X(e), call.inputs[1], Y(e), false, false, Accumulates(call, 0));
}

std::optional<BoundKernel> cpu_head_matmul_grad(const OpCall& call) {
  const HeadMatmulCall e = HeadMatmulCall::Of(call);
  if (!e.shared) return BindPerHeadGrad(call, e);
  return BindSharedGrad(call, e);
}

}  // namespace syntra
