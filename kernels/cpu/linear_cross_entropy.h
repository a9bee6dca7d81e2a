// What the SIMD loops of linear_cross_entropy see of a tile of logits.
#pragma once

#include <cstdint>

namespace syntra {

// Per token, over the blocks of the vocabulary so far.
struct TokenSums {
  float largest;  // logit
  float target_logit;
  double exponentials;  // sum of exp(logit - largest)
  double logits;        // sum of all logits, for label smoothing
};

struct LogitTile {
  float* logits;
  int64_t columns;
  int64_t first_column;  // in the vocabulary
  int64_t first_token, rows, repeated;
  const int32_t* targets;
};

// dlogit = probability_factor * exp(logit - log_z) - smoothed - [v = target] * target_share.
struct DlogitFactors {
  float factor;  // scale * inverse_denominator * dloss
  float z_loss;
  float smoothed, target_share;  // both times `factor`
};

}  // namespace syntra
