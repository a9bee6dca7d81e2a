// SPDX-License-Identifier: Apache-2.0
// Matrix products with oneDNN or our own. With AMX, products of bf16 are our own (tile_gemm.h):
// those with a packed B of at most 8,192 rows and those on one thread. With AVX-512, other products
// on one thread are (panel_gemm.h). A product is planned when a kernel is bound, and runs on raw
// pointers. C does not depend on the number of threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "kernels/gemm_problem.h"

namespace syntra {

enum class GemmThreads {
  // The product is split over the whole thread pool. Call it outside parallel regions, one at a
  // time. Operands with strides run on one thread; use ParallelFor and kCaller for them.
  kPool,
  // The product runs on the calling thread. The threads of a pool may run the same Gemm at once.
  kCaller,
};

// Construct it with the ThreadCount() that it will run with: it allocates a context per thread.
class Gemm {
 public:
  Gemm();  // unbound
  // Throws Error(kConfig) if the library has no products of that type for this processor, and
  // Error(kInternal) if it has no kernel for the problem.
  Gemm(const GemmProblem& problem, GemmThreads threads);
  Gemm(Gemm&&) noexcept;
  Gemm& operator=(Gemm&&) noexcept;
  ~Gemm();

  bool bound() const { return plan_ != nullptr; }
  // Bytes of 64-byte aligned scratch that each concurrent Run needs; may be 0.
  size_t workspace_bytes() const;
  // `mask`: the mask that an epilogue writes or applies (kernels/bit_mask.h). With an epilogue rows
  // of C are dense.
  void Run(const void* a, const void* b, void* c, std::byte* workspace, void* mask = nullptr) const;

 private:
  struct Plan;
  std::unique_ptr<Plan> plan_;
};

// A product whose B is first packed into the library's blocked layout, and rounded if it is stored
// as f32. That is faster in bf16 if A has many rows.
class PackedGemm {
 public:
  PackedGemm();  // unbound
  // `stored_b`: the element type of B as Pack reads it. `parts`: if B is stored as several matrices
  // that would be B side by side, the length of their rows.
  PackedGemm(const GemmProblem& problem, DType stored_b, GemmThreads threads,
             std::span<const int64_t> parts = {});
  PackedGemm(PackedGemm&&) noexcept;
  PackedGemm& operator=(PackedGemm&&) noexcept;
  ~PackedGemm();

  bool bound() const { return plan_ != nullptr; }
  // Whether Pack reads the parts of B; if not, it reads B as one matrix.
  bool packs_parts() const;
  // Names how B is packed: what one product has packed, another one of this layout can run on.
  const std::string& layout() const;
  size_t packed_bytes() const;     // size of the packed B, which is 64-byte aligned
  size_t workspace_bytes() const;  // for Pack and for Run, not both at once
  void Pack(std::span<const void* const> parts, std::byte* packed, std::byte* workspace) const;
  void Pack(const void* b, std::byte* packed, std::byte* workspace) const {
    Pack(std::span(&b, 1), packed, workspace);
  }
  void Run(const void* a, const std::byte* packed, void* c, std::byte* workspace,
           void* mask = nullptr) const;

 private:
  struct Plan;
  std::unique_ptr<Plan> plan_;
};

}  // namespace syntra
