// SPDX-License-Identifier: Apache-2.0
// gate_weights: the weights of a mixture from its few logits, and their gradient. One thread.
#include "kernels/cuda/launch.h"
#include "kernels/operands.h"

namespace syntra {
namespace {

using namespace gpu;

__global__ void SigmoidGateKernel(const float* logits, float* weights) {
  if (ThreadIndex() != 0) return;
  weights[0] = 1.0f / (1.0f + expf(logits[0]));
  weights[1] = 1.0f / (1.0f + expf(-logits[0]));
}

__global__ void SoftmaxGateKernel(const float* logits, float* weights, int64_t count) {
  if (ThreadIndex() != 0) return;
  float largest = logits[0], sum = 0.0f;
  for (int64_t i = 1; i < count; ++i) largest = fmaxf(largest, logits[i]);
  for (int64_t i = 0; i < count; ++i) sum += weights[i] = expf(logits[i] - largest);
  for (int64_t i = 0; i < count; ++i) weights[i] /= sum;
}

__global__ void SigmoidGateGradKernel(const float* weights, const float* d, float* dlogits,
                                      bool accumulate) {
  if (ThreadIndex() != 0) return;
  StoreResult((d[1] - d[0]) * weights[0] * weights[1], dlogits, accumulate);
}

__global__ void SoftmaxGateGradKernel(const float* weights, const float* d, float* dlogits,
                                      int64_t count, bool accumulate) {
  if (ThreadIndex() != 0) return;
  float mean = 0.0f;
  for (int64_t i = 0; i < count; ++i) mean += weights[i] * d[i];
  for (int64_t i = 0; i < count; ++i) {
    StoreResult(weights[i] * (d[i] - mean), dlogits + i, accumulate);
  }
}

constexpr Grid kOneWarp{1, kWarp};

bool IsSigmoid(const OpCall& call) { return call.attributes.Text("kind") == "sigmoid"; }

}  // namespace

std::optional<BoundKernel> cuda_gate_weights(const OpCall& call) {
  BoundKernel kernel;
  kernel.run = [sigmoid = IsSigmoid(call),
                count = call.inputs[0].shape.size()](const KernelArguments& arguments) {
    const auto* logits = Input<float>(arguments, 0);
    auto* weights = Output<float>(arguments, 0);
    if (sigmoid) {
      Launch(arguments, kOneWarp, SigmoidGateKernel, logits, weights);
    } else {
      Launch(arguments, kOneWarp, SoftmaxGateKernel, logits, weights, count);
    }
  };
  return kernel;
}

std::optional<BoundKernel> cuda_gate_weights_grad(const OpCall& call) {
  BoundKernel kernel;
  kernel.accumulates = true;
  kernel.run = [sigmoid = IsSigmoid(call), count = call.inputs[0].shape.size(),
                accumulate = Accumulates(call, 0)](const KernelArguments& arguments) {
    const auto *weights = Input<float>(arguments, 0), *d = Input<float>(arguments, 1);
    auto* dlogits = Output<float>(arguments, 0);
    if (sigmoid) {
      Launch(arguments, kOneWarp, SigmoidGateGradKernel, weights, d, dlogits, accumulate);
    } else {
      Launch(arguments, kOneWarp, SoftmaxGateGradKernel, weights, d, dlogits, count, accumulate);
    }
  };
  return kernel;
}

}  // namespace syntra
