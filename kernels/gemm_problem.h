// SPDX-License-Identifier: Apache-2.0
// A matrix product as every backend's library is asked for it: C = alpha op(A) op(B) (+ C), or the
// positive part of that, stored by rows.
#pragma once

#include <cstdint>

#include "core/dtype.h"

namespace syntra {

struct GemmProblem {
  int64_t m = 0, n = 0, k = 0;  // C [m, n], op(A) [m, k], op(B) [k, n]
  bool transpose_a = false, transpose_b = false;
  // Elements from one stored row to the next; 0: rows are dense.
  int64_t a_stride = 0, b_stride = 0, c_stride = 0;
  // A and B agree: both kF32 or both kBF16. C: kF32, or kBF16 if they are. Sums are f32.
  DType ab = DType::kF32, c = DType::kF32;
  float alpha = 1.0f;
  bool accumulate = false, relu = false;  // not both
};

}  // namespace syntra
