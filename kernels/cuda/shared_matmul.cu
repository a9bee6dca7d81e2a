// SPDX-License-Identifier: Apache-2.0
// shared_matmul and its gradient with cuBLASLt: for each group a batch of products over the
// examples; for the gradient of w a batch over the groups for each example, one after the other.
// With one group a batch has several examples, of which each adds to a sum of its own.
#include "kernels/shared_matmul_call.h"

#include <memory>

#include "kernels/converted.h"
#include "kernels/cuda/copy.h"
#include "kernels/cuda/gemm.h"
#include "kernels/cuda/reduce.h"

namespace syntra {
namespace {

using gpu::Gemm;
using gpu::GemmBatch;

struct Mixing {
  Converted w;
  Gemm examples;
  size_t scratch_offset;
};

struct Gradient {
  Gemm first, next;  // the examples after the first ones add to their result
};

// The examples of a batch: no more than give each multiprocessor of an H100 a tile of a sum, and a
// divisor of all.
int64_t ExamplesAtOnce(const SharedMatmulCall& e) {
  constexpr int64_t kTile = 128;
  const int64_t tiles = DivideUp(e.to, kTile) * DivideUp(e.from, kTile);
  int64_t examples =
      e.groups > 1 ? 1 : std::clamp<int64_t>(gpu::kTunedMultiprocessors / tiles, 1, e.batch);
  while (e.batch % examples != 0) --examples;
  return examples;
}

}  // namespace

std::optional<BoundKernel> cuda_shared_matmul(const OpCall& call) {
  const SharedMatmulCall e = SharedMatmulCall::Of(call);
  const size_t size = SizeOf(e.dtype);
  WorkspaceLayout layout;
  Converted w(call.inputs[0], e.dtype, cuda_copy, layout);
  Gemm examples(e.Product(Accumulates(call, 0)),
                GemmBatch{e.batch, 0, e.from * e.width(), e.to * e.width(), e.columns});
  BoundKernel kernel;
  kernel.accumulates = true;
  const size_t scratch_offset = layout.Place(examples.workspace_bytes());
  kernel.workspace_bytes = layout.bytes();
  const auto mixing =
      std::make_shared<const Mixing>(Mixing{std::move(w), std::move(examples), scratch_offset});
  kernel.run = [e, size, mixing](const KernelArguments& arguments) {
    const auto* from = static_cast<const std::byte*>(mixing->w.Run(arguments, 0));
    for (int64_t group = 0; group < e.groups; ++group) {
      mixing->examples.Run(arguments, from + group * e.to * e.from * size,
                           Input<std::byte>(arguments, 1) + group * e.columns * size,
                           Output<std::byte>(arguments, 0) + group * e.columns * size,
                           arguments.workspace + mixing->scratch_offset);
    }
  };
  return kernel;
}

std::optional<BoundKernel> cuda_shared_matmul_grad(const OpCall& call) {
  const SharedMatmulCall e = SharedMatmulCall::OfGrad(call);
  const size_t size = SizeOf(e.dtype);
  const int64_t step = ExamplesAtOnce(e), weights = e.to * e.from;
  const bool in_parts = step > 1, accumulate = Accumulates(call, 0);
  const GemmBatch batch = in_parts ? GemmBatch{step, e.to * e.width(), e.from * e.width(), weights}
                                   : GemmBatch{e.groups, e.columns, e.columns, weights};
  const auto gradient = std::make_shared<const Gradient>(
      Gradient{Gemm(e.GradientProduct(!in_parts && accumulate), batch),
               Gemm(e.GradientProduct(true), batch)});
  WorkspaceLayout layout;
  const size_t parts_offset = layout.PlaceFloats(in_parts ? step * weights : 0);
  const size_t scratch_offset =
      layout.Place(std::max(gradient->first.workspace_bytes(), gradient->next.workspace_bytes()));
  BoundKernel kernel;
  kernel.accumulates = true;
  kernel.workspace_bytes = layout.bytes();
  kernel.run = [=](const KernelArguments& arguments) {
    auto* result = Output<float>(arguments, 0);
    auto* parts = reinterpret_cast<float*>(arguments.workspace + parts_offset);
    for (int64_t b = 0; b < e.batch; b += step) {
      (b == 0 ? gradient->first : gradient->next)
          .Run(arguments, Input<std::byte>(arguments, 0) + b * e.to * e.width() * size,
               Input<std::byte>(arguments, 1) + b * e.from * e.width() * size,
               in_parts ? parts : result, arguments.workspace + scratch_offset);
    }
    if (in_parts) gpu::SumParts(arguments, parts, step, weights, result, accumulate);
  };
  return kernel;
}

}  // namespace syntra
