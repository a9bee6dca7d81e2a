// SPDX-License-Identifier: Apache-2.0
// A tensor as references of ops read and write it.
#pragma once

#include <cstdint>
#include <span>

#include "core/tensor.h"

namespace syntra {

// Floating-point types are stored as doubles.
struct ReferenceTensor {
  TensorType type;
  std::span<double> numbers;    // floating-point types
  std::span<int32_t> integers;  // kI32

  bool present() const { return type.present(); }
  int64_t dim(int i) const { return type.shape[i]; }
};

}  // namespace syntra
