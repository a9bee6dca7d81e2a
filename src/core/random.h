// SPDX-License-Identifier: Apache-2.0
// Counter-based random numbers (Philox4x32-10, Salmon et al. 2011). A number is a pure function of
// a key and a counter: no state to save, the same draws at any world size and thread count.
#pragma once

#include <Random123/philox.h>

#include <cstdint>
#include <string_view>

#include "base/host_device.h"

namespace syntra {

struct RandomKey {
  uint32_t low = 0;
  uint32_t high = 0;
};

using RandomBits = r123::Philox4x32::ctr_type;  // four uint32_t

// 128 random bits at `counter` of the stream (key, stream).
SYNTRA_HOST_DEVICE inline RandomBits RandomAt(RandomKey key, uint64_t counter,
                                              uint64_t stream = 0) {
  return r123::Philox4x32()({{static_cast<uint32_t>(counter), static_cast<uint32_t>(counter >> 32),
                              static_cast<uint32_t>(stream), static_cast<uint32_t>(stream >> 32)}},
                            {{key.low, key.high}});
}

// A key that depends on every argument: e.g. DeriveKey(seed, "dropout", step, example).
RandomKey DeriveKey(uint64_t seed, std::string_view purpose, uint64_t a = 0, uint64_t b = 0);

// Uniform in [0, 1) with 24 bits, exact in float.
SYNTRA_HOST_DEVICE constexpr float UniformFloat(uint32_t bits) {
  return static_cast<float>(bits >> 8) * 0x1p-24f;
}

// Uniform integer in [0, bound), without modulo bias beyond 2^-32 * bound.
constexpr uint32_t UniformBelow(uint32_t bits, uint32_t bound) {
  return static_cast<uint32_t>((static_cast<uint64_t>(bits) * bound) >> 32);
}

}  // namespace syntra
