// SPDX-License-Identifier: Apache-2.0
// Matrix products with cuBLASLt. They are planned when a kernel is bound: layouts, algorithm
// (algorithms.h) and workspace are then fixed, so that a training step can be captured as a CUDA
// graph.
#pragma once

#include <cstdint>
#include <memory>

#include "core/buffer.h"
#include "kernels/bound_kernel.h"
#include "kernels/gemm_problem.h"

namespace syntra::gpu {

// `count` products. A batch stride is the number of elements from one product's operand to the
// next; 0 if all products share the operand.
struct GemmBatch {
  int64_t count = 1, a_batch_stride = 0, b_batch_stride = 0, c_batch_stride = 0;
  // Each operand begins at an address that is a multiple of 64 bytes plus a multiple of
  // `begin_step` elements.
  int64_t begin_step = 0;
};

// cublasLtMatmul takes a workspace only at a multiple of 256 bytes; a kernel's parts of its
// workspace are at multiples of 64.
class LibraryWorkspace {
 public:
  static constexpr size_t kAlignment = 256;

  // How many bytes a kernel must reserve for a workspace of `bytes`.
  static size_t Reserved(size_t bytes) {
    return bytes == 0 ? 0 : bytes + kAlignment - Buffer::kAlignment;
  }
  // The address of the library's workspace inside the reserved memory.
  static std::byte* In(std::byte* reserved) {
    const auto address = reinterpret_cast<uintptr_t>(reserved);
    return reserved + (AlignUp(address, kAlignment) - address);
  }
};

class Gemm {
 public:
  Gemm();  // unbound
  // Throws Error(kInternal) if the library has no kernel for the problem. Products in f32 use IEEE
  // f32, never TF32. The problem has no epilogue.
  explicit Gemm(const GemmProblem& problem, const GemmBatch& batch = {});
  Gemm(Gemm&&) noexcept;
  Gemm& operator=(Gemm&&) noexcept;
  ~Gemm();

  bool bound() const { return plan_ != nullptr; }
  size_t workspace_bytes() const;
  // Enqueues the products on the call's stream. `workspace` has workspace_bytes(), 64-byte aligned.
  void Run(const KernelArguments& call, const void* a, const void* b, void* c,
           std::byte* workspace) const;

 private:
  struct Plan;
  std::unique_ptr<Plan> plan_;
};

}  // namespace syntra::gpu
