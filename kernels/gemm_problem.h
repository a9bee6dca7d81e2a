// SPDX-License-Identifier: Apache-2.0
// The description of a matrix product, for every backend's library: C = alpha op(A) op(B) (+ C), or
// the ReLU of that. Matrices are stored row-major.
#pragma once

#include <cstdint>

#include "core/dtype.h"

namespace syntra {

struct GemmProblem {
  int64_t m = 0, n = 0, k = 0;  // C [m, n], op(A) [m, k], op(B) [k, n]
  bool transpose_a = false, transpose_b = false;
  // Elements from one stored row to the next; 0 means that rows are dense.
  int64_t a_stride = 0, b_stride = 0, c_stride = 0;
  // A and B are both kF32 or both kBF16. C is kF32, or kBF16 if A and B are. Sums are f32.
  DType ab = DType::kF32, c = DType::kF32;
  float alpha = 1.0f;
  bool accumulate = false, relu = false;  // not both
};

}  // namespace syntra
