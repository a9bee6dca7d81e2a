// SPDX-License-Identifier: Apache-2.0
// The common parts of the kernels of matmul_relu.
#pragma once

#include <array>

#include "core/buffer.h"
#include "kernels/bound_kernel.h"
#include "kernels/op.h"

namespace syntra {

// Binds a call with bind(call), which needs y. If nothing else needs y, it is in the workspace.
template <typename Bind>
BoundKernel BindMatmulRelu(OpCall call, const Bind& bind) {
  if (call.outputs[0].present()) return bind(call);
  call.outputs[0] = GetOp("matmul").infer(call.attributes, call.inputs)[0];
  BoundKernel kernel = bind(call);
  const size_t place = AlignUp(kernel.workspace_bytes);
  kernel.workspace_bytes = place + call.outputs[0].bytes();
  kernel.run = [run = std::move(kernel.run), place](const KernelArguments& arguments) {
    const std::array<void*, 2> outputs = {arguments.workspace + place, arguments.outputs[1]};
    KernelArguments inside = arguments;
    inside.outputs = outputs;
    run(inside);
  };
  return kernel;
}

}  // namespace syntra
