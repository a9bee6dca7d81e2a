// SPDX-License-Identifier: Apache-2.0
// The random words of dropout's masks (kernels/math/random_mask.h), eight at a time.
#pragma once

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

// A mask with a draw for each element of a position, and the keys of its examples.
struct KeyedMask : TensorMask {
  const int32_t* keys;  // null: nothing is masked

  // Masks eight columns of a row, one of B * T. `kWhole`: the width is a multiple of eight.
  template <bool kWhole = false>
  __device__ __forceinline__ void Apply(Eight& values, int64_t row, int64_t column) const {
    if (keys == nullptr) return;
    const RandomKey key = RowKey(keys + row / positions * 2);
    const int64_t first = FirstDraw(row) + column;
    Mask(values, kWhole ? WholeNoiseAt(key, site, first) : NoiseAt(key, site, first), keep);
  }
};

}  // namespace syntra::gpu
