// SPDX-License-Identifier: Apache-2.0
// The dimensions and attributes of one call of add_norm or its gradient.
#pragma once

#include <array>

#include "core/dtype.h"
#include "kernels/cpu/shared_noise.h"
#include "kernels/math/random_mask.h"

namespace syntra {

struct AddNormCall {
  DType dtype = DType::kF32;
  int64_t rows = 0, positions = 0, width = 0;  // B*T, T, D
  bool masked = false, per_element = false;
  Keep keep;
  uint64_t site = 0;
  float epsilon = 0.0f;
  std::array<bool, 3> accumulate{};
  size_t noise_offset = 0;  // where the shared noise begins in the workspace
};

}  // namespace syntra
