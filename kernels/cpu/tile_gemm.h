// SPDX-License-Identifier: Apache-2.0
// Products of bf16 by AMX on the calling thread: C = alpha op(A) B (+ C) with a packed B (pack.h).
// A is read where it is or, if it is transposed, packed too.
#pragma once

#include <cstddef>

#include "kernels/gemm_problem.h"

namespace syntra {

class TileGemm {
 public:
  // Whether this processor has a kernel for the product: whole panels of B and, if A is transposed,
  // of A; else rows of A of whole blocks; no epilogue.
  static bool Covers(const GemmProblem& problem);

  explicit TileGemm(const GemmProblem& problem) : problem_(problem) {}

  // The size of the packed B that Pack makes of a B of the problem's type.
  size_t packed_bytes() const;
  void Pack(const void* b, std::byte* packed) const;

  size_t workspace_bytes() const;
  void Run(const void* a, const std::byte* packed, void* c, std::byte* workspace) const;

 private:
  int64_t words() const;

  GemmProblem problem_;
};

}  // namespace syntra
