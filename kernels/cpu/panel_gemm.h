// SPDX-License-Identifier: Apache-2.0
// Small products of one thread in registers of AVX-512: C = alpha op(A) op(B) (+ C), whose rows may
// be strided. Panels of B are packed one after the other, and a transposed A before; another A and
// C stay where they are.
#pragma once

#include <cstddef>

#include "kernels/gemm_problem.h"

namespace syntra {

class PanelGemm {
 public:
  // Whether this processor has AVX-512, for bf16 also AVX512_BF16, and the sizes are those that the
  // kernel serves: C has whole panels of columns and, if A is transposed, of rows.
  static bool Covers(const GemmProblem& problem);

  explicit PanelGemm(const GemmProblem& problem);

  size_t workspace_bytes() const;
  void Run(const void* a, const void* b, void* c, std::byte* workspace) const;

 private:
  GemmProblem problem_;
  int64_t words_;  // of a row of op(A)
};

}  // namespace syntra
