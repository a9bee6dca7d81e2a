// SPDX-License-Identifier: Apache-2.0
// Sums of exponentials of logits, from which probabilities follow, and the largest of many.
#pragma once

#include <cstdint>
#include <limits>

namespace syntra {

// What some of a softmax's logits contribute to it.
struct BlockExponentials {
  float largest;
  float sum;  // of exp(scale * (logit - largest)); not finite if a logit is NaN or infinity
};

// `scale` is positive and finite: 1 / temperature. Logits below `bound` do not count in the sum.
BlockExponentials SumExponentials(const float* logits, int64_t count, float scale = 1,
                                  float bound = -std::numeric_limits<float>::infinity());

// The largest of each block of kMaximumBlock logits; a NaN is passed over.
inline constexpr int64_t kMaximumBlock = 64;
void LargestOfBlocks(const float* logits, int64_t count, float* largest);

}  // namespace syntra
