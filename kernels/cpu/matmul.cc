// SPDX-License-Identifier: Apache-2.0
// matmul, matmul_relu and masked_matmul with oneDNN. Operands of another element type than the
// product's are first converted into the workspace. B is packed into the library's blocked layout
// if that is faster.
#include <algorithm>
#include <array>
#include <memory>

#include "kernels/converted.h"
#include "kernels/cpu/copy.h"
#include "kernels/cpu/gemm.h"
#include "kernels/cpu/matmul.h"
#include "kernels/cpu/strided.h"
#include "kernels/cpu/transposed_gemm.h"
#include "kernels/joined_matrix.h"
#include "kernels/matmul_relu_call.h"
#include "kernels/operands.h"
#include "kernels/packed_weights.h"

namespace syntra {

namespace {

// From this number of rows of A on, a packed B saves more time than packing costs.
constexpr int64_t kPackingRows = 256;

// Where an operand is, once it is in the form that the product wants.
using Operand = std::function<const void*(const KernelArguments&)>;

std::span<const TensorType> PartsOfB(const OpCall& call, const MatmulCall& matmul) {
  return std::span(call.inputs).subspan(1, matmul.b_parts);
}

// B as one matrix with dense rows.
Operand WholeB(const OpCall& call, const MatmulCall& matmul, WorkspaceLayout& layout) {
  const DType wanted = matmul.problem.ab;
  if (matmul.b_parts == 1 && call.inputs[1].pitch == 0) {
    return [b = Converted(call.inputs[1], wanted, cpu_copy, layout)](
               const KernelArguments& arguments) { return b.Run(arguments, 1); };
  }
  return [b = JoinedMatrix(PartsOfB(call, matmul), wanted, layout)](
             const KernelArguments& arguments) { return b.Join(arguments, 1, RunCopies); };
}

struct Product {
  MatmulCall call;
  Converted a;
  Operand b;
  Gemm gemm;
  size_t scratch_offset;
};

BoundKernel BindProduct(const OpCall& call, const MatmulCall& matmul) {
  GemmProblem problem = matmul.problem;
  problem.b_stride = 0;
  BoundKernel kernel;
  WorkspaceLayout layout;
  Converted a(call.inputs[0], problem.ab, cpu_copy, layout);
  Operand b = WholeB(call, matmul, layout);
  Gemm gemm(problem, GemmThreads::kPool);
  const size_t scratch_offset = layout.Place(gemm.workspace_bytes());
  kernel.workspace_bytes = layout.bytes();
  const auto product = std::make_shared<const Product>(
      Product{matmul, std::move(a), std::move(b), std::move(gemm), scratch_offset});
  kernel.accumulates = problem.epilogue == Epilogue::kNone;
  kernel.run = [product](const KernelArguments& arguments) {
    product->gemm.Run(product->a.Run(arguments, 0), product->b(arguments), arguments.outputs[0],
                      arguments.workspace + product->scratch_offset,
                      product->call.MaskIn(arguments));
  };
  return kernel;
}

// A product with a packed B. A very long k is split into slabs, so that the packed B stays small.
struct PackedProduct {
  MatmulCall call;
  Converted a;
  Operand whole_b;         // null: B's parts are packed from where they are
  PackedGemm first, next;  // the slabs after the first add to its result
  int64_t slabs;
  size_t a_bytes, b_bytes;  // from one slab to the next
  size_t packed_offset, scratch_offset;

  void Run(const KernelArguments& arguments) const {
    std::byte* workspace = arguments.workspace;
    const auto* left = static_cast<const std::byte*>(a.Run(arguments, 0));
    std::array<const void*, kMostJoined> b;
    const size_t parts = whole_b ? 1 : call.b_parts;
    if (whole_b) {
      b[0] = whole_b(arguments);
    } else {
      std::copy_n(arguments.inputs.begin() + 1, parts, b.begin());
    }
    for (int64_t slab = 0; slab < slabs; ++slab) {
      const PackedGemm& gemm = slab == 0 ? first : next;
      gemm.Pack(std::span(b).first(parts), workspace + packed_offset, workspace + scratch_offset);
      gemm.Run(left + slab * a_bytes, workspace + packed_offset, arguments.outputs[0],
               workspace + scratch_offset, call.MaskIn(arguments));
      for (size_t i = 0; i < parts; ++i) b[i] = static_cast<const std::byte*>(b[i]) + b_bytes;
    }
  }
};

// A product whose B is packed once. Inputs from the second on are parameters.
std::optional<BoundKernel> BindPackedOnce(const OpCall& call, const MatmulCall& matmul) {
  GemmProblem problem = matmul.problem;
  problem.b_stride = 0;
  std::vector<int64_t> lengths;
  for (const TensorType& part : PartsOfB(call, matmul)) lengths.push_back(part.shape[-1]);
  const auto gemm = std::make_shared<const PackedGemm>(problem, call.inputs[1].dtype,
                                                       GemmThreads::kPool, lengths);
  if (matmul.b_parts > 1 && !gemm->packs_parts()) return std::nullopt;
  WorkspaceLayout layout;
  Converted a(call.inputs[0], problem.ab, cpu_copy, layout);
  const size_t scratch = layout.Place(gemm->workspace_bytes());
  BoundKernel kernel;
  kernel.workspace_bytes = layout.bytes();
  kernel.accumulates = problem.epilogue == Epilogue::kNone;
  kernel.run = [=, a = std::move(a),
                weights = call.packed_weights](const KernelArguments& arguments) {
    const auto* left = a.Run(arguments, 0);
    const auto parts = arguments.inputs.subspan(1, matmul.b_parts);
    const auto pack = [&](std::byte* packed) {
      gemm->Pack(parts, packed, arguments.workspace + scratch);
    };
    const std::byte* packed = weights->Get(parts, gemm->layout(), gemm->packed_bytes(), pack);
    gemm->Run(left, packed, arguments.outputs[0], arguments.workspace + scratch,
              matmul.MaskIn(arguments));
  };
  return kernel;
}

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
  std::vector<int64_t> lengths;
  for (const TensorType& part : PartsOfB(call, matmul)) lengths.push_back(part.shape[-1]);
  PackedGemm first(slab, stored_b, GemmThreads::kPool, lengths), next;
  Operand whole_b;
  if (matmul.b_parts > 1 && !first.packs_parts()) {
    whole_b = WholeB(call, matmul, layout);
    first = PackedGemm(slab, problem.ab, GemmThreads::kPool);
  }
  slab.accumulate = true;
  if (slabs > 1) next = PackedGemm(slab, stored_b, GemmThreads::kPool);
  const size_t packed_offset = layout.Place(first.packed_bytes());
  const size_t scratch_offset =
      layout.Place(std::max(first.workspace_bytes(), slabs > 1 ? next.workspace_bytes() : 0));
  kernel.workspace_bytes = layout.bytes();
  const int64_t b_row = call.inputs[1].row_pitch();
  const auto product = std::make_shared<const PackedProduct>(
      PackedProduct{matmul, std::move(a), std::move(whole_b), std::move(first), std::move(next),
                    slabs, slab.k * problem.m * SizeOf(problem.ab),
                    slab.k * b_row * SizeOf(stored_b), packed_offset, scratch_offset});
  kernel.accumulates = problem.epilogue == Epilogue::kNone;
  kernel.run = [product](const KernelArguments& arguments) { product->Run(arguments); };
  return kernel;
}

}  // namespace

std::optional<BoundKernel> BindTransposed(const OpCall& call, const GemmProblem& problem,
                                          size_t first_b, size_t first_c) {
  const size_t count = call.outputs.size() - first_c;
  const auto operand = [&](size_t first, size_t parts) {
    TransposedGemm::Operand operand{call.inputs[first].dtype, {}, call.inputs[first].row_pitch()};
    for (size_t i = first; i < first + parts; ++i) {
      operand.parts.push_back(call.inputs[i].shape[-1]);
    }
    return operand;
  };
  for (size_t i = 0; i < count; ++i) {
    const TensorType &b = call.inputs[first_b + i], &other = call.inputs[first_b];
    if (!b.present() || b.dtype != other.dtype || b.row_pitch() != other.row_pitch() ||
        !call.outputs[first_c + i].present() ||
        Accumulates(call, first_c + i) != Accumulates(call, first_c)) {
      return std::nullopt;
    }
  }
  const TransposedGemm::Operand a = operand(0, 1), b = operand(first_b, count);
  if (!TransposedGemm::Covers(problem, a, b)) return std::nullopt;
  const TransposedGemm gemm(problem, a, b);
  BoundKernel kernel;
  kernel.workspace_bytes = gemm.workspace_bytes();
  kernel.accumulates = true;
  kernel.run = [=](const KernelArguments& arguments) {
    gemm.Run(arguments.inputs[0], arguments.inputs.subspan(first_b, count),
             arguments.outputs.subspan(first_c, count), arguments.workspace);
  };
  return kernel;
}

BoundKernel BindMatmul(const OpCall& call, const MatmulCall& product) {
  if (product.problem.transpose_a) {
    if (auto kernel = BindTransposed(call, product.problem, 1, 0)) return *std::move(kernel);
  } else if (call.packed_weights) {
    if (auto kernel = BindPackedOnce(call, product)) return *std::move(kernel);
  }
  if (product.problem.m >= kPackingRows) return BindPacked(call, product);
  return BindProduct(call, product);
}

std::optional<BoundKernel> cpu_matmul(const OpCall& call) {
  return BindMatmul(call, MatmulCall::Of(call));
}
std::optional<BoundKernel> cpu_masked_matmul(const OpCall& call) {
  return BindMatmul(call, MatmulCall::OfMasked(call));
}
std::optional<BoundKernel> cpu_matmul_relu(const OpCall& call) {
  return BindMatmulRelu(
      call, [](const OpCall& each) { return BindMatmul(each, MatmulCall::OfRelu(each)); });
}

}  // namespace syntra
