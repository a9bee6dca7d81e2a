// SPDX-License-Identifier: Apache-2.0
// Matrix products by cuBLASLt, planned when a kernel is bound: layouts, the library's choice of
// algorithm and its workspace are fixed then, so that a step can be captured.
#pragma once

#include <memory>

#include "kernels/gemm_problem.h"
#include "kernels/op.h"

namespace syntra::gpu {

// `count` products whose operands are apart by fixed numbers of elements; 0 for an operand that
// all share.
struct GemmBatch {
  int64_t count = 1, a_step = 0, b_step = 0, c_step = 0;
};

class Gemm {
 public:
  Gemm();  // unbound
  // Throws Error(kInternal) if the library has no kernel for the problem. In f32 products are IEEE
  // f32, never TF32.
  explicit Gemm(const GemmProblem& problem, const GemmBatch& batch = {});
  Gemm(Gemm&&) noexcept;
  Gemm& operator=(Gemm&&) noexcept;
  ~Gemm();

  bool bound() const { return plan_ != nullptr; }
  size_t workspace_bytes() const;
  // On the call's stream. `workspace`: its bytes, 64-byte aligned.
  void Run(const KernelArguments& call, const void* a, const void* b, void* c,
           std::byte* workspace) const;

 private:
  struct Plan;
  std::unique_ptr<Plan> plan_;
};

}  // namespace syntra::gpu
