// SPDX-License-Identifier: Apache-2.0
// What the SIMD loops of linear_cross_entropy see besides a tile of logits.
#pragma once

#include <cstdint>

namespace syntra {

// Of a token's logits in one block of the vocabulary.
struct BlockSums {
  float largest;
  float exponentials;  // sum of exp(logit - largest)
  float logits;        // their sum, for label smoothing
};

// A token of the chunk at work.
struct TokenSoftmax {
  int32_t target;  // does not count if <= 0
  float target_logit;
  double log_z;  // log of the sum of exp(logit) over the vocabulary
};

// dlogit = factor * (1 + 2 z_loss log_z) * exp(logit - log_z) - smoothed - [v = target] *
// target_share.
struct DlogitFactors {
  double factor;  // scale * inverse_denominator * dloss
  double z_loss;
  double smoothed, target_share;  // both times `factor`
};

}  // namespace syntra
