// SPDX-License-Identifier: Apache-2.0
// Axes in the attributes and shapes of ops.
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

inline TensorType WithExtent(const TensorType& type, int axis, int64_t extent) {
  std::vector<int64_t> dims(type.shape.dims().begin(), type.shape.dims().end());
  dims[axis] = extent;
  return {type.dtype, Shape(dims)};
}

}  // namespace syntra
