// SPDX-License-Identifier: Apache-2.0
// Axes in the attributes of ops.
#pragma once

#include "kernels/ops/shapes.h"

namespace syntra {

// The attribute {axis}, an axis of `type`.
inline int AxisIn(std::string_view op, const Attributes& attributes, const TensorType& type) {
  const int64_t axis = attributes.Int("axis");
  SYNTRA_CHECK(axis >= 0 && axis < type.shape.rank(), "{} of {} along axis {}", op, ToString(type),
               axis);
  return static_cast<int>(axis);
}

}  // namespace syntra
