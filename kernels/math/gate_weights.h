// SPDX-License-Identifier: Apache-2.0
// The weights of a mixture and their gradient (kernels/ops/gate_weights.cc), as every backend's
// kernels compute them. They are so few that one thread computes them all.
#pragma once

#include <cmath>
#include <cstdint>

#include "base/host_device.h"

namespace syntra {

struct GateWeights {
  const float* logits;
  float* weights;
  int64_t count;  // of logits
  bool sigmoid;   // otherwise softmax

  SYNTRA_HOST_DEVICE void operator()() const {
    if (sigmoid) {
      weights[0] = 1.0f / (1.0f + std::exp(logits[0]));
      weights[1] = 1.0f / (1.0f + std::exp(-logits[0]));
      return;
    }
    float largest = logits[0], sum = 0.0f;
    for (int64_t i = 1; i < count; ++i) largest = logits[i] > largest ? logits[i] : largest;
    for (int64_t i = 0; i < count; ++i) sum += weights[i] = std::exp(logits[i] - largest);
    for (int64_t i = 0; i < count; ++i) weights[i] /= sum;
  }
};

struct GateWeightsGrad {
  const float *weights, *d;  // d: the gradient of the weights
  float* dlogits;
  int64_t count;  // of weights
  bool sigmoid, accumulate;

  SYNTRA_HOST_DEVICE void operator()() const {
    if (sigmoid) return Store(0, (d[1] - d[0]) * weights[0] * weights[1]);
    float mean = 0.0f;
    for (int64_t i = 0; i < count; ++i) mean += weights[i] * d[i];
    for (int64_t i = 0; i < count; ++i) Store(i, weights[i] * (d[i] - mean));
  }

 private:
  SYNTRA_HOST_DEVICE void Store(int64_t i, float value) const {
    dlogits[i] = accumulate ? dlogits[i] + value : value;
  }
};

}  // namespace syntra
