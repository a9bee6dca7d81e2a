// SPDX-License-Identifier: Apache-2.0
// The numbers that the SIMD loops of linear_cross_entropy use besides a tile of logits.
#pragma once

#include <cstdint>

namespace syntra {

// Statistics of a token's logits in one block of the vocabulary.
struct BlockSums {
  float largest;
  float exponentials;  // sum of exp(logit - largest)
  float logits;        // sum of the logits, for label smoothing
};

// The softmax of one token of the current chunk.
struct TokenSoftmax {
  int32_t target;  // row of the embedding; the token is ignored if this is negative
  float target_logit;
  double log_z;  // log of the sum of exp(logit) over the vocabulary
};

// dlogit = factor * (1 + 2 z_loss log_z) * exp(logit - log_z) - smoothed - [v = target] *
// target_share.
struct DlogitFactors {
  double factor;  // scale * inverse_denominator * dloss
  double z_loss;
  double smoothed, target_share;  // already multiplied by `factor`
};

}  // namespace syntra
