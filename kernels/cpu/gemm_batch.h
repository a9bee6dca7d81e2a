// SPDX-License-Identifier: Apache-2.0
// Matrix products of one kind, shared by all threads: each thread computes whole products, or all
// threads the only one.
#pragma once

#include "core/buffer.h"
#include "core/thread.h"
#include "kernels/cpu/gemm.h"

namespace syntra {

// Two loops over products. Strides are the bytes from the operands of one product to those of the
// next.
struct ProductLoop {
  struct Strides {
    size_t a = 0, b = 0, c = 0;
  };
  int64_t outer = 1, inner = 1;
  Strides outer_strides, inner_strides;

  int64_t count() const { return outer * inner; }
};

// Construct it with the ThreadCount() that it will run with.
class Products {
 public:
  Products() = default;
  Products(const GemmProblem& problem, const ProductLoop& loop)
      : gemm_(problem, loop.count() == 1 ? GemmThreads::kPool : GemmThreads::kCaller),
        loop_(loop),
        scratch_(AlignUp(gemm_.workspace_bytes())) {}

  bool bound() const { return gemm_.bound(); }
  size_t workspace_bytes() const {
    return scratch_ * std::min<int64_t>(loop_.count(), ThreadCount());
  }

  void Run(const void* a, const void* b, void* c, std::byte* workspace) const {
    if (loop_.count() == 1) return gemm_.Run(a, b, c, workspace);
    ParallelTasks(loop_.count(), [&](int64_t i) {
      const size_t outer = i / loop_.inner, inner = i % loop_.inner;
      const ProductLoop::Strides &far = loop_.outer_strides, &near = loop_.inner_strides;
      gemm_.Run(static_cast<const std::byte*>(a) + outer * far.a + inner * near.a,
                static_cast<const std::byte*>(b) + outer * far.b + inner * near.b,
                static_cast<std::byte*>(c) + outer * far.c + inner * near.c,
                workspace + ThreadIndex() * scratch_);
    });
  }

 private:
  Gemm gemm_;
  ProductLoop loop_;
  size_t scratch_ = 0;
};

}  // namespace syntra
