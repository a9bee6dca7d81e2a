// SPDX-License-Identifier: Apache-2.0
// The layout in the workspace of masks that all positions of an example share.
#pragma once

#include <cstdint>

#include "core/buffer.h"
#include "kernels/math/random_mask.h"

namespace syntra {

// Words from one example's noise to the next. The padding allows reads of whole vectors past the
// end.
constexpr int64_t SharedNoiseStride(int64_t draws) {
  return static_cast<int64_t>(AlignUp(static_cast<size_t>(draws) + 16, 16));
}
inline size_t SharedNoiseBytes(const TensorMask& mask) {
  if (mask.per_element) return 0;
  return static_cast<size_t>(mask.examples * SharedNoiseStride(mask.draws)) * sizeof(uint32_t);
}

}  // namespace syntra
