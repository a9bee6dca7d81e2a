// SPDX-License-Identifier: Apache-2.0
// Matrix products by oneDNN, planned when a kernel is bound and run on raw pointers. Operands with
// dense rows are 5 to 10 % faster than others. The bits of C do not depend on the number of
// threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "kernels/gemm_problem.h"

namespace syntra {

enum class GemmThreads {
  // The product is split over the whole pool; call it outside parallel regions, one at a time.
  // Operands
  // with strides of their own run on one thread: split those with ParallelFor and kCaller.
  kPool,
  // Runs on the calling thread alone; the threads of one team may run the same Gemm at once.
  kCaller,
};

// Bind under the thread count that it will run with: contexts are made for that many threads.
class Gemm {
 public:
  Gemm();  // unbound
  // Throws Error(kInternal) if the library has no kernel for the problem.
  Gemm(const GemmProblem& problem, GemmThreads threads);
  Gemm(Gemm&&) noexcept;
  Gemm& operator=(Gemm&&) noexcept;
  ~Gemm();

  bool bound() const { return plan_ != nullptr; }
  // Bytes of 64-byte aligned scratch that each concurrent Run needs; may be 0.
  size_t workspace_bytes() const;
  void Run(const void* a, const void* b, void* c, std::byte* workspace) const;

 private:
  struct Plan;
  std::unique_ptr<Plan> plan_;
};

// A product whose B is first rearranged into the library's own blocked layout, which pays in bf16
// when many rows of A meet the same B, and is rounded on the way if it is stored as f32.
class PackedGemm {
 public:
  PackedGemm();  // unbound
  // `stored_b`: the element type of B as Pack reads it.
  PackedGemm(const GemmProblem& problem, DType stored_b, GemmThreads threads);
  PackedGemm(PackedGemm&&) noexcept;
  PackedGemm& operator=(PackedGemm&&) noexcept;
  ~PackedGemm();

  bool bound() const { return plan_ != nullptr; }
  size_t packed_bytes() const;     // of the rearranged B, 64-byte aligned
  size_t workspace_bytes() const;  // of Pack and of Run, one at a time
  void Pack(const void* b, std::byte* packed, std::byte* workspace) const;
  void Run(const void* a, const std::byte* packed, void* c, std::byte* workspace) const;

 private:
  struct Plan;
  std::unique_ptr<Plan> plan_;
};

}  // namespace syntra
