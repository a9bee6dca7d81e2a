// SPDX-License-Identifier: Apache-2.0
// Sums of exponentials of logits, from which log-probabilities follow, and the largest of many.
#pragma once

#include <cstdint>

namespace syntra {

// What some of a softmax's logits contribute to it.
struct BlockExponentials {
  float largest;
  float sum;  // of exp(logit - largest); not finite if a logit is NaN or infinity
};

BlockExponentials SumExponentials(const float* logits, int64_t count);

// The largest of each block of kMaximumBlock logits; a NaN is passed over.
inline constexpr int64_t kMaximumBlock = 64;
void LargestOfBlocks(const float* logits, int64_t count, float* largest);

}  // namespace syntra
