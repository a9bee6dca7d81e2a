// SPDX-License-Identifier: Apache-2.0
// batch_matmul with cuBLASLt. Operands of another element type than the product's are first
// converted into the workspace.
#include "kernels/batch_matmul_call.h"

#include <memory>
#include <numeric>
#include <utility>

#include "kernels/converted.h"
#include "kernels/cuda/copy.h"
#include "kernels/cuda/gemm.h"

namespace syntra {
namespace {

// A loop over products: how many, and the elements from the operands of one to those of the next.
struct BatchLoop {
  int64_t count = 1, a = 0, b = 0, c = 0;

  static BatchLoop OverHeads(const BatchMatmulCall& e) {
    return {e.heads(), e.a.head_stride(), e.b.head_stride(), e.c.head_stride()};
  }
  static BatchLoop OverOuter(const BatchMatmulCall& e) {
    return {e.outer, e.a.outer_stride(), e.b.outer_stride(), e.c.outer_stride()};
  }
  bool Continues(const BatchLoop& inner) const {
    return a == inner.count * inner.a && b == inner.count * inner.b && c == inner.count * inner.c;
  }
};

// The library takes one distance from a product to the next. Heads and the axes before them are two
// loops if the rows of an operand come first: the longer one is the library's.
struct BatchLoops {
  BatchLoop library, own;

  static BatchLoops Of(const BatchMatmulCall& e) {
    BatchLoop heads = BatchLoop::OverHeads(e);
    const BatchLoop outer = BatchLoop::OverOuter(e);
    if (outer.Continues(heads)) {
      heads.count *= outer.count;
      return {heads, {}};
    }
    return heads.count > outer.count ? BatchLoops{heads, outer} : BatchLoops{outer, heads};
  }

  gpu::GemmBatch Batch() const {
    return {library.count, library.a, library.b, library.c,
            std::gcd(own.a, std::gcd(own.b, own.c))};
  }
};

struct Batch {
  Converted a, b;
  gpu::Gemm products;
  size_t scratch_offset;
};

}  // namespace

std::optional<BoundKernel> cuda_batch_matmul(const OpCall& call) {
  const BatchMatmulCall e = BatchMatmulCall::Of(call);
  const BatchLoops loops = BatchLoops::Of(e);
  WorkspaceLayout layout;
  Converted a(call.inputs[0], e.problem.ab, cuda_copy, layout);
  Converted b(call.inputs[1], e.problem.ab, cuda_copy, layout);
  gpu::Gemm products(e.problem, loops.Batch());
  BoundKernel kernel;
  kernel.accumulates = true;
  const size_t scratch_offset = layout.Place(products.workspace_bytes());
  kernel.workspace_bytes = layout.bytes();
  const auto batch = std::make_shared<const Batch>(
      Batch{std::move(a), std::move(b), std::move(products), scratch_offset});
  const size_t ab_size = SizeOf(e.problem.ab), c_size = SizeOf(e.problem.c);
  kernel.run = [batch, own = loops.own, ab_size, c_size](const KernelArguments& arguments) {
    const auto* left = static_cast<const std::byte*>(batch->a.Run(arguments, 0));
    const auto* right = static_cast<const std::byte*>(batch->b.Run(arguments, 1));
    auto* result = Output<std::byte>(arguments, 0);
    for (int64_t i = 0; i < own.count; ++i) {
      batch->products.Run(arguments, left + i * own.a * ab_size, right + i * own.b * ab_size,
                          result + i * own.c * c_size, arguments.workspace + batch->scratch_offset);
    }
  };
  return kernel;
}

}  // namespace syntra
