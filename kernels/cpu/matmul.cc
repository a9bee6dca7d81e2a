// SPDX-License-Identifier: Apache-2.0
// matmul and matmul_grad with oneDNN. Operands of another element type than the product's are first
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

// One product, or one per group whose operands are fixed strides apart.
struct Product {
  Converted a, b;
  Gemm gemm;
  int64_t groups;
  size_t a_bytes, b_bytes, c_bytes;  // from one group to the next
  size_t scratch_offset;

  void Run(const KernelArguments& arguments) const {
    std::byte* workspace = arguments.workspace;
    const auto* left = static_cast<const std::byte*>(a.Run(arguments, 0));
    const auto* right = static_cast<const std::byte*>(b.Run(arguments, 1));
    auto* result = static_cast<std::byte*>(arguments.outputs[0]);
    for (int64_t group = 0; group < groups; ++group) {
      gemm.Run(left + group * a_bytes, right + group * b_bytes, result + group * c_bytes,
               workspace + scratch_offset);
    }
  }
};

BoundKernel BindProduct(const OpCall& call, const GemmProblem& problem, int64_t groups) {
  BoundKernel kernel;
  WorkspaceLayout layout;
  Converted a(call.inputs[0], problem.ab, cpu_copy, layout);
  Converted b(call.inputs[1], problem.ab, cpu_copy, layout);
  Gemm gemm(problem, GemmThreads::kPool);
  const size_t size = SizeOf(problem.ab), scratch_offset = layout.Place(gemm.workspace_bytes());
  kernel.workspace_bytes = layout.bytes();
  const auto product = std::make_shared<const Product>(Product{
      std::move(a), std::move(b), std::move(gemm), groups, problem.m * problem.k * size,
      problem.k * problem.n * size, problem.m * problem.n * SizeOf(problem.c), scratch_offset});
  kernel.accumulates = !problem.relu;
  kernel.run = [product](const KernelArguments& arguments) { product->Run(arguments); };
  return kernel;
}

// A product with a packed B. A very long k is split into slabs, so that the packed B stays small.
struct PackedProduct {
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
               workspace + scratch_offset);
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

BoundKernel BindPacked(const OpCall& call, const GemmProblem& problem) {
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
      PackedProduct{std::move(a), std::move(first), std::move(next), slabs,
                    slab.k * problem.m * SizeOf(problem.ab), slab.k * problem.n * SizeOf(stored_b),
                    packed_offset, scratch_offset});
  kernel.accumulates = !problem.relu;
  kernel.run = [product](const KernelArguments& arguments) { product->Run(arguments); };
  return kernel;
}

}  // namespace

std::optional<BoundKernel> BindMatmul(const OpCall& call, const MatmulCall& product) {
  if (!AllActivations(call)) return std::nullopt;
  if (product.groups == 1 && product.problem.m >= kPackingRows) {
    return BindPacked(call, product.problem);
  }
  return BindProduct(call, product.problem, product.groups);
}

std::optional<BoundKernel> cpu_matmul(const OpCall& call) {
  return BindMatmul(call, MatmulCall::Of(call));
}

std::optional<BoundKernel> cpu_matmul_grad(const OpCall& call) {
  if (!AllActivations(call)) return std::nullopt;
  const MatmulCall product = MatmulCall::OfGrad(call);
  return BindProduct(call, product.problem, product.groups);
}

}  // namespace syntra
