// SPDX-License-Identifier: Apache-2.0
#include "data/permutation.h"

#include <algorithm>
#include <bit>

#include "base/error.h"

namespace syntra {
namespace {
constexpr int kRounds = 6;
// With narrower halves, six rounds leave a bias.
constexpr int kMinHalfBits = 4;
}  // namespace

KeyedPermutation::KeyedPermutation(int64_t size, RandomKey key) : size_(size), key_(key) {
  SYNTRA_CHECK(size >= 0);
  const int bits = std::bit_width(static_cast<uint64_t>(std::max<int64_t>(size - 1, 1)));
  half_bits_ = std::max((bits + 1) / 2, kMinHalfBits);
}

int64_t KeyedPermutation::operator()(int64_t index) const {
  SYNTRA_CHECK(index >= 0 && index < size_, "index {} of {}", index, size_);
  const uint64_t mask = (uint64_t{1} << half_bits_) - 1;
  auto value = static_cast<uint64_t>(index);
  do {
    uint64_t left = value >> half_bits_, right = value & mask;
    for (int round = 0; round < kRounds; ++round) {
      const uint64_t mixed = left ^ (RandomAt(key_, right, round)[0] & mask);
      left = right;
      right = mixed;
    }
    value = left << half_bits_ | right;
  } while (value >= static_cast<uint64_t>(size_));
  return static_cast<int64_t>(value);
}

}  // namespace syntra
