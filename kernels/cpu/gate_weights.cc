// SPDX-License-Identifier: Apache-2.0
// gate_weights and its gradient: a handful of numbers.
#include <algorithm>
#include <cmath>

#include "kernels/op.h"
#include "kernels/operands.h"

namespace syntra {

namespace {

bool IsSigmoid(const OpCall& call) { return call.attributes.Text("kind") == "sigmoid"; }

void Softmax(const float* logits, int64_t count, float* weights) {
  const float largest = *std::max_element(logits, logits + count);
  float sum = 0;
  for (int64_t i = 0; i < count; ++i) sum += weights[i] = std::exp(logits[i] - largest);
  for (int64_t i = 0; i < count; ++i) weights[i] /= sum;
}

}  // namespace

std::optional<BoundKernel> cpu_gate_weights(const OpCall& call) {
  if (!IsF32(call.inputs[0])) return std::nullopt;
  BoundKernel kernel;
  kernel.run = [sigmoid = IsSigmoid(call),
                count = call.inputs[0].shape.size()](const KernelArguments& arguments) {
    const auto* logits = Input<float>(arguments, 0);
    auto* weights = Output<float>(arguments, 0);
    if (!sigmoid) return Softmax(logits, count, weights);
    weights[0] = 1 / (1 + std::exp(logits[0]));
    weights[1] = 1 / (1 + std::exp(-logits[0]));
  };
  return kernel;
}

std::optional<BoundKernel> cpu_gate_weights_grad(const OpCall& call) {
  if (!IsF32(call.inputs[0]) || !IsF32(call.inputs[1])) return std::nullopt;
  BoundKernel kernel;
  kernel.accumulates = true;
  kernel.run = [sigmoid = IsSigmoid(call), count = call.inputs[0].shape.size(),
                accumulate = Accumulates(call, 0)](const KernelArguments& arguments) {
    const auto *weights = Input<float>(arguments, 0), *d = Input<float>(arguments, 1);
    auto* dlogits = Output<float>(arguments, 0);
    const auto store = [&](int64_t i, float value) {
      dlogits[i] = accumulate ? dlogits[i] + value : value;
    };
    if (sigmoid) return store(0, (d[1] - d[0]) * weights[0] * weights[1]);
    float mean = 0;
    for (int64_t i = 0; i < count; ++i) mean += weights[i] * d[i];
    for (int64_t i = 0; i < count; ++i) store(i, weights[i] * (d[i] - mean));
  };
  return kernel;
}

}  // namespace syntra
