// SPDX-License-Identifier: Apache-2.0
// Small products of one thread in registers of AVX-512: C = alpha op(A) op(B) (+ C), whose rows may
// be strided. Panels of B are packed one after the other, and a transposed A before; another A and
// C stay where they are.
#pragma once

#include <cstddef>

#include "kernels/gemm_problem.h"

namespace syntra {

// Whether this processor multiplies panels of this type in registers: it needs AVX-512, for bf16
// also AVX512_BF16.
bool MultipliesPanels(DType type);

// The 64 columns of C beside a packed panel of B (PanelLayout::kRows). `a` is A or, if it is
// transposed, its panels in strips (PanelLayout::kStrips). m, a_stride, c_stride, k, types, alpha
// and accumulate are the problem's.
void MultiplyPanel(const GemmProblem& problem, const void* a, const std::byte* panel, void* c);

class PanelGemm {
 public:
  // Whether the processor does, and the sizes are those that the kernel serves: C has whole panels
  // of columns and, if A is transposed, of rows.
  static bool Covers(const GemmProblem& problem);

  explicit PanelGemm(const GemmProblem& problem);

  size_t workspace_bytes() const;
  void Run(const void* a, const void* b, void* c, std::byte* workspace) const;

 private:
  // The part of `words` words from `first` on.
  void RunWords(int64_t first, int64_t words, const void* a, const void* b, void* c,
                std::byte* workspace) const;

  GemmProblem problem_;
  int64_t words_;  // of a row of op(A)
};

}  // namespace syntra
