// SPDX-License-Identifier: Apache-2.0
// Masks of whole tensors: the data from which they are made, and the layout in the workspace of
// masks that all positions of an example share.
#pragma once

#include <cstdint>

#include "core/buffer.h"
#include "kernels/bound_kernel.h"
#include "kernels/math/random_mask.h"

namespace syntra {

// Words from one example's noise to the next. The padding allows reads of whole vectors past the
// end.
constexpr int64_t SharedNoiseStride(int64_t width) {
  return static_cast<int64_t>(AlignUp(static_cast<size_t>(width) + 16, 16));
}
inline size_t SharedNoiseBytes(int64_t examples, int64_t width) {
  return static_cast<size_t>(examples * SharedNoiseStride(width)) * sizeof(uint32_t);
}

// The mask of a tensor [B, T, D]: each draw decides about `group` elements.
struct TensorMask {
  int64_t examples, positions, width, group;
  Keep keep;
  uint64_t site;
  bool per_element;

  // The mask of a call with attributes {rate, site, per_element}.
  static TensorMask Of(const OpCall& call, const Shape& shape, int64_t group = 1) {
    return {.examples = shape[0],
            .positions = shape[1],
            .width = shape[2],
            .group = group,
            .keep = Keep::AtRate(call.attributes.Number("rate")),
            .site = static_cast<uint64_t>(call.attributes.Int("site")),
            .per_element = call.attributes.Flag("per_element")};
  }
  int64_t draws() const { return width / group; }  // of a position
  size_t workspace_bytes() const { return per_element ? 0 : SharedNoiseBytes(examples, draws()); }
};

}  // namespace syntra
