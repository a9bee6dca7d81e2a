// SPDX-License-Identifier: Apache-2.0
// The scalars and tensors of one AdamW update.
#pragma once

namespace syntra {

struct AdamwFactors {
  float gradient_scale = 1.0f;
  float beta1 = 0.0f, one_minus_beta1 = 1.0f, beta2 = 0.0f, one_minus_beta2 = 1.0f;
  float epsilon = 0.0f, step = 0.0f, v_scale = 1.0f;
  float keep_before = 1.0f, keep_after = 1.0f;  // weight decay before or after the step
};

struct AdamwTensors {
  const float* gradient;
  float *parameter, *m, *v;
};

}  // namespace syntra
