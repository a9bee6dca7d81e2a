// SPDX-License-Identifier: Apache-2.0
// What the SIMD loop of linear_log_probability gives.
#pragma once

namespace syntra {

// What a block of the vocabulary adds to the softmax of a token's logits.
struct BlockExponentials {
  float largest;
  float sum;  // of exp(logit - largest)
};

}  // namespace syntra
