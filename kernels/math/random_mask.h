// SPDX-License-Identifier: Apache-2.0
// The keep decision of dropout's masks, shared by every backend: element e of a row of the batch
// reads word e % 4 of Philox at counter e / 4 of the stream `site`, under the row's own key.
#pragma once

#include <cmath>
#include <cstdint>

#include "base/host_device.h"
#include "core/random.h"

namespace syntra {

// `words`: the row's two entries of a `keys` tensor.
SYNTRA_HOST_DEVICE inline RandomKey RowKey(const int32_t* words) {
  return {static_cast<uint32_t>(words[0]), static_cast<uint32_t>(words[1])};
}

// The rate is compared in float, so that backends agree on every draw.
SYNTRA_HOST_DEVICE inline bool Keeps(RandomKey key, uint64_t element, uint64_t site, float rate) {
  return UniformFloat(RandomAt(key, element / 4, site)[element % 4]) >= rate;
}

// The same decision in integers: a word keeps its element iff word >= threshold.
struct Keep {
  uint32_t threshold = 0;
  float scale = 1.0f;  // 1 / (1 - rate)

  static Keep AtRate(double rate) {
    const double compared = static_cast<float>(rate);
    const auto steps = static_cast<uint32_t>(std::ceil(compared * 0x1p24));
    return {steps << 8, static_cast<float>(1.0 / (1.0 - rate))};
  }
};

}  // namespace syntra
