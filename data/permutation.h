// SPDX-License-Identifier: Apache-2.0
// A keyed bijection of [0, size): a shuffle without memory, with access to any place.
#pragma once

#include <cstdint>

#include "core/random.h"

namespace syntra {

// A six-round Feistel network over the smallest even power of two that is at least `size`. A value
// outside [0, size) is encrypted again until it is inside (cycle walking, Black and Rogaway 2002).
// The domain is less than four times `size`, but at least 256, so that takes fewer than four rounds
// on average, and more where a few values are permuted.
class KeyedPermutation {
 public:
  KeyedPermutation(int64_t size, RandomKey key);

  int64_t size() const { return size_; }
  int64_t operator()(int64_t index) const;

 private:
  int64_t size_;
  int half_bits_;
  RandomKey key_;
};

}  // namespace syntra
