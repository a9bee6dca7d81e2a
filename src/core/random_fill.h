// SPDX-License-Identifier: Apache-2.0
// Arrays of random numbers. Element i is a function of the key and i alone: any split over threads,
// and any instruction set, gives the same bits.
#pragma once

#include <span>

#include "core/random.h"

namespace syntra {

// Uniform in (-limit, limit).
void FillUniform(RandomKey key, double limit, std::span<float> values);

// Normal with mean 0. With `cut` > 0 the distribution is cut at that many deviations to both sides
// (as if draws outside were made again; not rescaled); 0 means the whole normal distribution.
void FillNormal(RandomKey key, double deviation, double cut, std::span<float> values);

}  // namespace syntra
