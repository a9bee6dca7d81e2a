// SPDX-License-Identifier: Apache-2.0
// The description of a matrix product, for every backend's library: C = alpha op(A) op(B) (+ C), or
// an epilogue of that. Matrices are stored row-major.
#pragma once

#include <cstdint>

#include "core/dtype.h"

namespace syntra {

// The function that is applied to a sum x before it is stored.
enum class Epilogue {
  kNone,
  kRelu,      // max(x, 0), and NaN of NaN
  kReluMask,  // the same, and a mask gets bits where it is positive (kernels/bit_mask.h)
  kMask       // x where a mask has a bit, else 0
};

struct GemmProblem {
  int64_t m = 0, n = 0, k = 0;  // C [m, n], op(A) [m, k], op(B) [k, n]
  bool transpose_a = false, transpose_b = false;
  // Elements from one stored row to the next; 0 means that rows are dense.
  int64_t a_stride = 0, b_stride = 0, c_stride = 0;
  // A and B are both kF32 or both kBF16. C is kF32, or kBF16 if A and B are. Sums are f32.
  DType ab = DType::kF32, c = DType::kF32;
  float alpha = 1.0f;
  bool accumulate = false;  // not with an epilogue
  Epilogue epilogue = Epilogue::kNone;

  // Elements from one stored row to the next, also of dense rows.
  int64_t a_row() const { return a_stride > 0 ? a_stride : transpose_a ? m : k; }
  int64_t b_row() const { return b_stride > 0 ? b_stride : transpose_b ? k : n; }
  int64_t c_row() const { return c_stride > 0 ? c_stride : n; }
};

}  // namespace syntra
