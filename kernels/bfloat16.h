// SPDX-License-Identifier: Apache-2.0
// Conversions between float and bfloat16: round to nearest, ties to even; NaN stays NaN.
#pragma once

#if defined(__x86_64__)
#include <cpuid.h>
#endif

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

#if defined(__x86_64__)
// Whether the processor has instructions that round to bf16 and multiply pairs (AVX512_BF16).
inline const bool kHasAvx512Bf16 = [] {
  __builtin_cpu_init();
  return __builtin_cpu_supports("avx512bf16") != 0;
}();

// Whether the processor multiplies tiles of bf16 (AMX), several times faster than vectors.
inline const bool kHasAmxBf16 = [] {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  return __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) != 0 && (edx >> 22 & 1) != 0;
}();
#endif

// Whether the processor multiplies bf16 by other instructions, which takes longer than f32.
inline bool BFloat16IsEmulated() {
#if defined(__x86_64__)
  return !kHasAvx512Bf16 && !kHasAmxBf16;
#else
  return false;
#endif
}

}  // namespace syntra
