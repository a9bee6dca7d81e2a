// SPDX-License-Identifier: Apache-2.0
// Draws without replacement, by counters.
#pragma once

#include <cstdint>
#include <span>

#include "core/random.h"

namespace syntra {

// Sets `count` of the marks, which are all 0, to 1; all choices of `count` marks are equally
// likely. The choice is a function of the key and the stream.
void ChooseAtRandom(int64_t count, RandomKey key, uint64_t stream, std::span<uint8_t> marks);

}  // namespace syntra
