// SPDX-License-Identifier: Apache-2.0
// C = A^T B (+ C) of matrices A [k, m] and B [k, n] that are both stored by rows: the gradient of
// weights. C is a sum of outer products of their rows, so nothing is transposed. C does not depend
// on the number of threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/gemm_problem.h"

namespace syntra {

class TransposedGemm {
 public:
  // An operand as it is stored: matrices that are logically side by side, each in its own memory.
  struct Operand {
    DType stored;                // f32 may be rounded to the product's type
    std::vector<int64_t> parts;  // columns of each matrix, multiples of 64
    int64_t stride;              // elements from one row to the next

    int64_t panels() const;
  };

  // Whether this processor has a kernel for the product: it needs AVX-512, for bf16 also
  // AVX512_BF16 or AMX.
  static bool Covers(const GemmProblem& problem, const Operand& a, const Operand& b);

  // A has one part. C has as many as B, with dense rows: C_i = A^T B_i. Construct it with the
  // ThreadCount() that it will run with.
  TransposedGemm(const GemmProblem& problem, Operand a, Operand b);

  size_t workspace_bytes() const;
  // Call it outside parallel regions.
  void Run(const void* a, std::span<const void* const> b, std::span<void* const> c,
           std::byte* workspace) const;

 private:
  // Rows of words of packed panels.
  int64_t packed_words(int64_t words) const;
  size_t panel_bytes() const;
  size_t resident_bytes() const;

  DType type_;
  bool accumulate_;
  bool tiles_;     // AMX's
  int64_t words_;  // rows of A and B, of words of 4 bytes
  Operand a_, b_;
};

}  // namespace syntra
