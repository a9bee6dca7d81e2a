// SPDX-License-Identifier: Apache-2.0
// Sinusoidal positions (Vaswani et al. 2017, section 3.5).
#pragma once

#include <cstdint>
#include <vector>

#include "configs/schema/config.pb.h"

namespace syntra {

// A sine or cosine for each position and column, [length, width].
std::vector<float> SinusoidTable(SinusoidalPositions::Layout layout, int64_t length, int64_t width);

}  // namespace syntra
