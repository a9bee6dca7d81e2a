// SPDX-License-Identifier: Apache-2.0
// What the SIMD loop of linear_log_probability gives.
#pragma once

namespace syntra {

// Of a token's logits in one block of the vocabulary.
struct BlockExponentials {
  float largest;
  float sum;  // of exp(logit - largest)
};

}  // namespace syntra
