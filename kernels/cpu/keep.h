// The keep decision of random masks in integers, and where shared masks lie in a workspace.
#pragma once

#include <cmath>

#include "core/buffer.h"
#include "core/random.h"

namespace syntra {

// A word keeps its element iff word >= threshold, which is UniformFloat(word) >= rate without
// rounding.
struct Keep {
  uint32_t threshold = 0;
  float scale = 1.0f;  // 1 / (1 - rate)

  static Keep AtRate(double rate) {
    // Every backend compares with the rate in float.
    const double compared = static_cast<float>(rate);
    const auto steps = static_cast<uint32_t>(std::ceil(compared * 0x1p24));
    return {steps << 8, static_cast<float>(1.0 / (1.0 - rate))};
  }
};

inline RandomKey KeyOf(const int32_t* keys, int64_t example) {
  return {static_cast<uint32_t>(keys[2 * example]), static_cast<uint32_t>(keys[2 * example + 1])};
}

// Words from one example's shared noise to the next: room to read whole vectors past the end.
constexpr int64_t SharedNoiseStride(int64_t width) {
  return static_cast<int64_t>(AlignUp(static_cast<size_t>(width) + 16, 16));
}
inline size_t SharedNoiseBytes(int64_t examples, int64_t width) {
  return static_cast<size_t>(examples * SharedNoiseStride(width)) * sizeof(uint32_t);
}

}  // namespace syntra
