// SPDX-License-Identifier: Apache-2.0
// Conversions between float and bfloat16: round to nearest, ties to even; NaN stays NaN.
#pragma once

#include <bit>
#include <cmath>

#include "core/tensor.h"

namespace syntra {

inline float ToFloat(BFloat16 value) {
  return std::bit_cast<float>(static_cast<uint32_t>(value.bits) << 16);
}

inline BFloat16 ToBFloat16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if (std::isnan(value)) return {static_cast<uint16_t>((bits >> 16) | 0x40)};
  return {static_cast<uint16_t>((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16)};
}

}  // namespace syntra
