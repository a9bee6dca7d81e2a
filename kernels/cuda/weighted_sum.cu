// SPDX-License-Identifier: Apache-2.0
// weighted_sum: the sum of x w, in double.
#include "kernels/cuda/reduce.h"
#include "kernels/operands.h"

namespace syntra {

std::optional<BoundKernel> cuda_weighted_sum(const OpCall& call) {
  if (!IsActivation(call.inputs[0]) || !IsActivation(call.inputs[1])) return std::nullopt;
  BoundKernel kernel;
  kernel.accumulates = true;
  kernel.workspace_bytes = gpu::kSumBytes;
  kernel.run = [x_type = call.inputs[0].dtype, w_type = call.inputs[1].dtype,
                count = call.inputs[0].shape.size(),
                accumulate = Accumulates(call, 0)](const KernelArguments& arguments) {
    WithActivation(x_type, [&](auto x) {
      WithActivation(w_type, [&](auto w) {
        using Term = gpu::ProductTerm<decltype(x), decltype(w)>;
        gpu::SumElements(arguments, count,
                         Term{Input<decltype(x)>(arguments, 0), Input<decltype(w)>(arguments, 1)},
                         reinterpret_cast<double*>(arguments.workspace),
                         gpu::StoreSum{Output<float>(arguments, 0), accumulate});
      });
    });
  };
  return kernel;
}

}  // namespace syntra
