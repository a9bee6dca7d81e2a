// SPDX-License-Identifier: Apache-2.0
// The result of the SIMD loop of linear_log_probability.
#pragma once

namespace syntra {

// The contribution of a block of the vocabulary to the softmax of a token's logits.
struct BlockExponentials {
  float largest;
  float sum;  // of exp(logit - largest)
};

}  // namespace syntra
