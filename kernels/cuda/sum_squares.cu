// SPDX-License-Identifier: Apache-2.0
// sum_squares: the sum of x^2, in double.
#include "kernels/cuda/reduce.h"
#include "kernels/operands.h"

namespace syntra {
std::optional<BoundKernel> cuda_sum_squares(const OpCall& call) {
  if (!IsF32(call.inputs[0]) || !IsF32(call.outputs[0])) return std::nullopt;
  BoundKernel kernel;
  kernel.accumulates = true;
  kernel.workspace_bytes = gpu::kSumBytes;
  kernel.run = [count = call.inputs[0].shape.size(),
                accumulate = Accumulates(call, 0)](const KernelArguments& arguments) {
    const float* x = Input<float>(arguments, 0);
    gpu::SumElements(arguments, count, gpu::ProductTerm<float, float>{x, x},
                     reinterpret_cast<double*>(arguments.workspace),
                     gpu::StoreSum{Output<float>(arguments, 0), accumulate});
  };
  return kernel;
}

}  // namespace syntra
