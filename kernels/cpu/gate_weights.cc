// SPDX-License-Identifier: Apache-2.0
// gate_weights and its gradient: a few numbers.
#include "kernels/math/gate_weights.h"

#include "kernels/op.h"
#include "kernels/operands.h"

namespace syntra {

std::optional<BoundKernel> cpu_gate_weights(const OpCall& call) {
  if (!IsF32(call.inputs[0])) return std::nullopt;
  BoundKernel kernel;
  kernel.run = [sigmoid = call.attributes.Text("kind") == "sigmoid",
                count = call.inputs[0].shape.size()](const KernelArguments& arguments) {
    GateWeights{Input<float>(arguments, 0), Output<float>(arguments, 0), count, sigmoid}();
  };
  return kernel;
}

std::optional<BoundKernel> cpu_gate_weights_grad(const OpCall& call) {
  if (!IsF32(call.inputs[0]) || !IsF32(call.inputs[1])) return std::nullopt;
  BoundKernel kernel;
  kernel.accumulates = true;
  kernel.run = [sigmoid = call.attributes.Text("kind") == "sigmoid",
                count = call.inputs[0].shape.size(),
                accumulate = Accumulates(call, 0)](const KernelArguments& arguments) {
    GateWeightsGrad{Input<float>(arguments, 0),
                    Input<float>(arguments, 1),
                    Output<float>(arguments, 0),
                    count,
                    sigmoid,
                    accumulate}();
  };
  return kernel;
}

}  // namespace syntra
