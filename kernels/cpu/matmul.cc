// SPDX-License-Identifier: Apache-2.0
// matmul with oneDNN. Operands of another element type than the product's are first
// converted into the workspace. B is packed into the library's blocked layout if that is faster.
#include <memory>

#include "kernels/converted.h"
#include "kernels/cpu/copy.h"
#include "kernels/cpu/gemm.h"
#include "kernels/cpu/matmul.h"
#include "kernels/matmul_call.h"
#include "kernels/operands.h"

namespace syntra {

namespace {

// From this number of rows of A on, a packed B saves more time than packing costs.
constexpr int64_t kPackingRows = 256;

bool AllActivations(const OpCall& call) {
  return IsActivation(call.inputs[0]) && IsActivation(call.inputs[1]) &&
         IsActivation(call.outputs[0]);
}

struct Product {
  MatmulCall call;
  Converted a, b;
  Gemm gemm;
  size_t scratch_offset;
};

BoundKernel BindProduct(const OpCall& call, const MatmulCall& matmul) {
  const GemmProblem& problem = matmul.problem;
  BoundKernel kernel;
  WorkspaceLayout layout;
  Converted a(call.inputs[0], problem.ab, cpu_copy, layout);
  Converted b(call.inputs[1], problem.ab, cpu_copy, layout);
  Gemm gemm(problem, GemmThreads::kPool);
  const size_t scratch_offset = layout.Place(gemm.workspace_bytes());
  kernel.workspace_bytes = layout.bytes();
  const auto product = std::make_shared<const Product>(
      Product{matmul, std::move(a), std::move(b), std::move(gemm), scratch_offset});
  kernel.accumulates = problem.epilogue == Epilogue::kNone;
  kernel.run = [product](const KernelArguments& arguments) {
    product->gemm.Run(product->a.Run(arguments, 0), product->b.Run(arguments, 1),
                      arguments.outputs[0], arguments.workspace + product->scratch_offset,
                      product->call.MaskIn(arguments));
  };
  return kernel;
}

// A product with a packed B. A very long k is split into slabs, so that the packed B stays small.
struct PackedProduct {
  MatmulCall call;
  Converted a;
  PackedGemm first, next;  // the slabs after the first add to its result
  int64_t slabs;
  size_t a_bytes, b_bytes;  // from one slab to the next
  size_t packed_offset, scratch_offset;

  void Run(const KernelArguments& arguments) const {
    std::byte* workspace = arguments.workspace;
    const auto* left = static_cast<const std::byte*>(a.Run(arguments, 0));
    const auto* right = static_cast<const std::byte*>(arguments.inputs[1]);
    for (int64_t slab = 0; slab < slabs; ++slab) {
      const PackedGemm& gemm = slab == 0 ? first : next;
      gemm.Pack(right + slab * b_bytes, workspace + packed_offset, workspace + scratch_offset);
      gemm.Run(left + slab * a_bytes, workspace + packed_offset, arguments.outputs[0],
               workspace + scratch_offset, call.MaskIn(arguments));
    }
  }
};

// Splits k into as few equal slabs as possible. In both operands k must be the stored rows.
int64_t SlabsOf(const GemmProblem& problem) {
  constexpr int64_t kMostRows = 4096, kFewestRows = 1024;
  if (!problem.transpose_a || problem.k <= kMostRows) return 1;
  int64_t rows = kMostRows;
  while (rows >= kFewestRows && problem.k % rows != 0) --rows;
  return rows >= kFewestRows ? problem.k / rows : 1;
}

BoundKernel BindPacked(const OpCall& call, const MatmulCall& matmul) {
  const GemmProblem& problem = matmul.problem;
  BoundKernel kernel;
  WorkspaceLayout layout;
  Converted a(call.inputs[0], problem.ab, cpu_copy, layout);
  const int64_t slabs = SlabsOf(problem);
  const DType stored_b = call.inputs[1].dtype;
  GemmProblem slab = problem;
  slab.k /= slabs;
  PackedGemm first(slab, stored_b, GemmThreads::kPool), next;
  slab.accumulate = true;
  if (slabs > 1) next = PackedGemm(slab, stored_b, GemmThreads::kPool);
  const size_t packed_offset = layout.Place(first.packed_bytes());
  const size_t scratch_offset =
      layout.Place(std::max(first.workspace_bytes(), slabs > 1 ? next.workspace_bytes() : 0));
  kernel.workspace_bytes = layout.bytes();
  const auto product = std::make_shared<const PackedProduct>(
      PackedProduct{matmul, std::move(a), std::move(first), std::move(next), slabs,
                    slab.k * problem.m * SizeOf(problem.ab), slab.k * problem.n * SizeOf(stored_b),
                    packed_offset, scratch_offset});
  kernel.accumulates = problem.epilogue == Epilogue::kNone;
  kernel.run = [product](const KernelArguments& arguments) { product->Run(arguments); };
  return kernel;
}

}  // namespace

std::optional<BoundKernel> BindMatmul(const OpCall& call, const MatmulCall& product) {
  if (!AllActivations(call)) return std::nullopt;
  if (product.problem.m >= kPackingRows) return BindPacked(call, product);
  return BindProduct(call, product);
}

std::optional<BoundKernel> cpu_matmul(const OpCall& call) {
  return BindMatmul(call, MatmulCall::Of(call));
}

}  // namespace syntra
