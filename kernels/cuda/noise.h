// SPDX-License-Identifier: Apache-2.0
// The random words of dropout's masks (kernels/math/random_mask.h), eight at a time.
#pragma once

#include "kernels/bound_kernel.h"
#include "kernels/cuda/gpu.h"
#include "kernels/math/random_mask.h"

namespace syntra::gpu {

struct EightWords {
  uint32_t value[kEight];
};

// The words of elements [first, first + 8) of a row, where first is a multiple of four.
__device__ __forceinline__ EightWords WholeNoiseAt(RandomKey key, uint64_t site, uint64_t first) {
  EightWords words;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const RandomBits bits = RandomAt(key, first / 4 + half, site);
#pragma unroll
    for (int i = 0; i < 4; ++i) words.value[4 * half + i] = bits[i];
  }
  return words;
}

// The words of elements [first, first + 8) of a row, for any `first`.
__device__ __forceinline__ EightWords NoiseAt(RandomKey key, uint64_t site, uint64_t first) {
  const auto shift = static_cast<int>(first % 4);
  if (shift == 0) return WholeNoiseAt(key, site, first);
  const RandomBits bits[] = {RandomAt(key, first / 4, site), RandomAt(key, first / 4 + 1, site),
                             RandomAt(key, first / 4 + 2, site)};
  const auto word = [&bits](int i) { return bits[i / 4][i % 4]; };
  EightWords words;
#pragma unroll
  for (int i = 0; i < kEight; ++i) {
    words.value[i] = shift == 1 ? word(i + 1) : shift == 2 ? word(i + 2) : word(i + 3);
  }
  return words;
}

// Scales the values that the words keep and sets the others to zero.
__device__ __forceinline__ void Mask(Eight& values, const EightWords& words, const Keep& keep) {
#pragma unroll
  for (int i = 0; i < kEight; ++i) {
    values[i] = words.value[i] >= keep.threshold ? values[i] * keep.scale : 0.0f;
  }
}

// The mask of a tensor [B, T, D] with a draw for each element of a position.
struct TensorMask {
  const int32_t* keys;
  Keep keep;
  uint64_t site;
  int64_t positions, width;
  bool per_element;

  // The mask of a call with attributes {rate, site, per_element}.
  static TensorMask Of(const Attributes& attributes, const Shape& shape, const int32_t* keys) {
    return {keys,
            Keep::AtRate(attributes.Number("rate")),
            static_cast<uint64_t>(attributes.Int("site")),
            shape[1],
            shape[2],
            attributes.Flag("per_element")};
  }

  // Masks eight columns of a row, one of B * T.
  __device__ __forceinline__ void Apply(Eight& values, int64_t row, int64_t column) const {
    const int64_t first = (per_element ? row % positions * width : 0) + column;
    Mask(values, NoiseAt(RowKey(keys + row / positions * 2), site, first), keep);
  }
};

}  // namespace syntra::gpu
