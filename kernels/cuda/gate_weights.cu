// SPDX-License-Identifier: Apache-2.0
// gate_weights and its gradient: a few numbers, computed by one thread.
#include "kernels/math/gate_weights.h"

#include "kernels/cuda/launch.h"
#include "kernels/operands.h"

namespace syntra {
namespace {

using namespace gpu;

template <typename Body>
__global__ void OneThreadKernel(Body body) {
  if (ThreadIndex() == 0) body();
}

constexpr Grid kOneWarp{1, kWarp};

}  // namespace

std::optional<BoundKernel> cuda_gate_weights(const OpCall& call) {
  BoundKernel kernel;
  kernel.run = [sigmoid = call.attributes.Text("kind") == "sigmoid",
                count = call.inputs[0].shape.size()](const KernelArguments& arguments) {
    Launch(arguments, kOneWarp, OneThreadKernel<GateWeights>,
           GateWeights{Input<float>(arguments, 0), Output<float>(arguments, 0), count, sigmoid});
  };
  return kernel;
}

std::optional<BoundKernel> cuda_gate_weights_grad(const OpCall& call) {
  BoundKernel kernel;
  kernel.accumulates = true;
  kernel.run = [sigmoid = call.attributes.Text("kind") == "sigmoid",
                count = call.inputs[0].shape.size(),
                accumulate = Accumulates(call, 0)](const KernelArguments& arguments) {
    Launch(arguments, kOneWarp, OneThreadKernel<GateWeightsGrad>,
           GateWeightsGrad{Input<float>(arguments, 0), Input<float>(arguments, 1),
                           Output<float>(arguments, 0), count, sigmoid, accumulate});
  };
  return kernel;
}

}  // namespace syntra
