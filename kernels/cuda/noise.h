// The words that decide dropout's masks (kernels/math/random_mask.h), eight at a time.
#pragma once

#include "kernels/cuda/gpu.h"
#include "kernels/math/random_mask.h"

namespace syntra::gpu {

struct EightWords {
  uint32_t value[kEight];
};

// The words of elements [first, first + 8) of a row.
__device__ __forceinline__ EightWords NoiseAt(RandomKey key, uint64_t site, uint64_t first) {
  EightWords words;
  if (first % 4 == 0) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const RandomBits bits = RandomAt(key, first / 4 + half, site);
#pragma unroll
      for (int i = 0; i < 4; ++i) words.value[4 * half + i] = bits[i];
    }
  } else {
    for (int i = 0; i < kEight; ++i) {
      words.value[i] = RandomAt(key, (first + i) / 4, site)[(first + i) % 4];
    }
  }
  return words;
}

// The values scaled where the words say keep, zero elsewhere.
__device__ __forceinline__ void Mask(Eight& values, const EightWords& words, const Keep& keep) {
#pragma unroll
  for (int i = 0; i < kEight; ++i) {
    values[i] = words.value[i] >= keep.threshold ? values[i] * keep.scale : 0.0f;
  }
}

}  // namespace syntra::gpu
