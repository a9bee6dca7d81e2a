// SPDX-License-Identifier: Apache-2.0
// Orthogonal random vectors, for the random features of Performer.
#pragma once

#include <cstdint>
#include <span>

#include "core/random.h"

namespace syntra {

// Writes a matrix [rows, columns], row-major, to `values`. Its columns are normal vectors of
// deviation 1 whose directions are made orthogonal in groups of `rows`, and whose lengths are kept
// (Choromanski et al. 2021, section 2.4).
void FillOrthogonal(RandomKey key, int64_t rows, std::span<float> values);

}  // namespace syntra
