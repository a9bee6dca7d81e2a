// SPDX-License-Identifier: Apache-2.0
// Products of bf16 by AMX: C = alpha op(A) B (+ C), or an epilogue of that, with a packed B
// (pack.h). A is read where it is or, if it is transposed, packed too. C does not depend on the
// number of threads.
#pragma once

#include <cstddef>

#include "kernels/gemm_problem.h"

namespace syntra {

class TileGemm {
 public:
  // Whether this processor has AMX, and the sizes are those that the kernel serves: B consists of
  // whole panels; so does a transposed A, while the rows of another A consist of whole blocks; and
  // rows of masks have no padding.
  static bool Covers(const GemmProblem& problem);
  // Whether it is also faster than the library's product where threads share it: a panel of B stays
  // in a core's cache.
  static bool CoversShared(const GemmProblem& problem);

  // `threads`: how many share the product; with more than one, run it outside parallel regions.
  TileGemm(const GemmProblem& problem, int threads);

  // The size of the packed B that Pack makes of a B of the problem's type.
  size_t packed_bytes() const;
  void Pack(const void* b, std::byte* packed) const;

  size_t workspace_bytes() const;
  // `mask`: as in Gemm::Run.
  void Run(const void* a, const std::byte* packed, void* c, std::byte* workspace,
           void* mask = nullptr) const;

 private:
  struct Operands {
    const std::byte *a, *packed;
    std::byte *c, *mask;
  };
  // A part of C that a thread multiplies at once.
  struct Part {
    int64_t row, rows, column, columns;
  };

  void Multiply(const Operands& operands, const Part& part) const;

  GemmProblem problem_;
  int64_t words_;  // rows of words of the packed B
  bool is_shared_;
  int64_t part_rows_, part_columns_;  // at most
};

}  // namespace syntra
