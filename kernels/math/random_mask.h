// SPDX-License-Identifier: Apache-2.0
// Random numbers of a row's elements, and dropout's decision which of them to keep, shared by all
// backends. Element e of a row of the batch uses word e % 4 of Philox at counter e / 4 of stream
// `site`, with the row's key.
#pragma once

#include <cmath>
#include <cstdint>

#include "base/host_device.h"
#include "core/random.h"
#include "core/shape.h"
#include "kernels/attributes.h"

namespace syntra {

// `words` are the row's two entries in a `keys` tensor.
SYNTRA_HOST_DEVICE inline RandomKey RowKey(const int32_t* words) {
  return {static_cast<uint32_t>(words[0]), static_cast<uint32_t>(words[1])};
}

// In (0, 1), a multiple of 2^-24 that is not a multiple of 2^-23: exact in float, and never an end.
SYNTRA_HOST_DEVICE inline float OpenUniform(uint32_t word) {
  return (static_cast<float>(word >> 9) + 0.5f) * 0x1p-23f;
}
SYNTRA_HOST_DEVICE inline float OpenUniform(RandomKey key, uint64_t element, uint64_t site) {
  return OpenUniform(RandomAt(key, element / 4, site)[element % 4]);
}

// The rate is compared in float, so that backends agree on every draw.
SYNTRA_HOST_DEVICE inline bool Keeps(RandomKey key, uint64_t element, uint64_t site, float rate) {
  return UniformFloat(RandomAt(key, element / 4, site)[element % 4]) >= rate;
}

// The same decision in integers: an element is kept if and only if its word >= threshold.
struct Keep {
  uint32_t threshold = 0;
  float scale = 1.0f;  // 1 / (1 - rate)

  static Keep AtRate(double rate) {
    const double compared = static_cast<float>(rate);
    const auto levels = static_cast<uint32_t>(std::ceil(compared * 0x1p24));
    return {levels << 8, static_cast<float>(1.0 / (1.0 - rate))};
  }
};

// The mask of a tensor [B, T, D].
struct TensorMask {
  int64_t examples, positions, width;  // B, T, D
  int64_t group, draws;                // each of a position's draws decides about `group` elements
  Keep keep;
  uint64_t site;
  bool per_element;  // else all positions of an example share their draws

  // The mask of a call with attributes {rate, site, per_element}.
  static TensorMask Of(const Attributes& attributes, const Shape& shape, int64_t group = 1) {
    return {.examples = shape[0],
            .positions = shape[1],
            .width = shape[2],
            .group = group,
            .draws = shape[2] / group,
            .keep = Keep::AtRate(attributes.Number("rate")),
            .site = static_cast<uint64_t>(attributes.Int("site")),
            .per_element = attributes.Flag("per_element")};
  }
  bool masks() const { return keep.threshold > 0; }  // else it keeps everything
  // The first draw of row `row` of B * T.
  SYNTRA_HOST_DEVICE int64_t FirstDraw(int64_t row) const {
    return per_element ? row % positions * draws : 0;
  }
};

}  // namespace syntra
