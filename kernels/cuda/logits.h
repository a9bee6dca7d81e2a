// SPDX-License-Identifier: Apache-2.0
// The output projection, scale * hidden embedding^T, one chunk of tokens after the other, so that
// only a part of the logits is in memory.
#pragma once

#include <array>
#include <memory>

#include "base/divide.h"
#include "kernels/converted.h"
#include "kernels/cuda/copy.h"
#include "kernels/cuda/gemm.h"
#include "kernels/operands.h"
#if !defined(__CUDACC__)
#include "simt/device.h"
#endif

namespace syntra::gpu {

// The most logits of a chunk: 256 MB, or few enough that the calls of tests have several chunks.
#if defined(__CUDACC__)
inline constexpr int64_t kMostLogits = 64 << 20;
#else
inline constexpr int64_t kMostLogits = simt::kMostLogits;
#endif

// All chunks have the same number of tokens, except that the last may have fewer.
struct LogitChunks {
  int64_t tokens, width, vocabulary, rows, count;
  DType dtype;  // of hidden and of the products' operands
  float scale;

  // The chunks of a call whose first inputs are hidden and embedding.
  explicit LogitChunks(const OpCall& call, int64_t most_logits = kMostLogits)
      : tokens(call.inputs[0].shape.rows()),
        width(call.inputs[0].shape[-1]),
        vocabulary(call.inputs[1].shape[0]),
        dtype(call.inputs[0].dtype),
        scale(static_cast<float>(call.attributes.Number("scale"))) {
    // Few logits, but products that are large enough to fill the GPU. Chunks are whole tiles of the
    // products. So no chunk but the last leaves a part of a tile idle, and a chunk's operands are
    // aligned as tensors are, whatever the width.
    constexpr int64_t kTile = 128;
    const int64_t tiles = DivideUp(tokens, kTile);
    const int64_t most_tiles = std::max<int64_t>(1, most_logits / vocabulary / kTile);
    rows = std::min(tokens, kTile * DivideUp(tiles, DivideUp(tiles, most_tiles)));
    count = DivideUp(tokens, rows);
  }

  int64_t first(int64_t chunk) const { return chunk * rows; }
  int64_t size(int64_t chunk) const { return std::min(rows, tokens - first(chunk)); }
  size_t hidden_bytes(int64_t chunk) const { return first(chunk) * width * SizeOf(dtype); }
};

// A product for all chunks but the last, and one for the last.
class ChunkGemm {
 public:
  ChunkGemm() = default;
  // `rows` is the member of the problem that is the number of tokens of a chunk; it is set here.
  ChunkGemm(const LogitChunks& chunks, GemmProblem problem, int64_t GemmProblem::*rows) {
    for (const int64_t chunk : {int64_t{0}, chunks.count - 1}) {
      problem.*rows = chunks.size(chunk);
      gemm_[chunk > 0] = Gemm(problem);
    }
    last_ = chunks.count - 1;
  }

  size_t workspace_bytes() const {
    size_t bytes = 0;
    for (const Gemm& gemm : gemm_) {
      if (gemm.bound()) bytes = std::max(bytes, gemm.workspace_bytes());
    }
    return bytes;
  }
  void Run(const KernelArguments& call, int64_t chunk, const void* a, const void* b, void* c,
           std::byte* workspace) const {
    gemm_[chunk == last_ && chunk > 0].Run(call, a, b, c, workspace);
  }

 private:
  std::array<Gemm, 2> gemm_;
  int64_t last_ = 0;
};

struct LogitChunk {
  int64_t index, first, tokens;  // of the first token, and how many
  float* logits;                 // [tokens, vocabulary]
  const void* embedding;         // in the operand type of the products
};

// The logits of a call, a chunk at a time in the workspace.
class PassingLogits {
 public:
  PassingLogits(const OpCall& call, WorkspaceLayout& layout)
      : chunks_(call),
        embedding_(call.inputs[1], chunks_.dtype, cuda_copy, layout),
        product_(chunks_,
                 {.n = chunks_.vocabulary,
                  .k = chunks_.width,
                  .transpose_b = true,
                  .ab = chunks_.dtype,
                  .alpha = chunks_.scale},
                 &GemmProblem::m),
        logits_(layout.Place(chunks_.rows * chunks_.vocabulary * sizeof(float))) {}

  const LogitChunks& chunks() const { return chunks_; }
  size_t scratch_bytes() const { return product_.workspace_bytes(); }

  // Calls take(LogitChunk) for each chunk, once its product is enqueued. `scratch` is taken between
  // these calls.
  template <typename Take>
  void Run(const KernelArguments& arguments, std::byte* scratch, const Take& take) const {
    const void* embedding = embedding_.Run(arguments, 1);
    auto* logits = reinterpret_cast<float*>(arguments.workspace + logits_);
    for (int64_t i = 0; i < chunks_.count; ++i) {
      product_.Run(arguments, i, Input<std::byte>(arguments, 0) + chunks_.hidden_bytes(i),
                   embedding, logits, scratch);
      take(LogitChunk{i, chunks_.first(i), chunks_.size(i), logits, embedding});
    }
  }

 private:
  LogitChunks chunks_;
  Converted embedding_;
  ChunkGemm product_;
  size_t logits_;
};

// A kernel that needs the logits once: launch(arguments, chunk, vocabulary) for each chunk.
template <typename LaunchChunk>
BoundKernel BindToLogits(const OpCall& call, const LaunchChunk& launch) {
  WorkspaceLayout layout;
  const auto logits = std::make_shared<const PassingLogits>(call, layout);
  const size_t scratch = layout.Place(logits->scratch_bytes());
  BoundKernel kernel;
  kernel.workspace_bytes = layout.bytes();
  kernel.run = [logits, scratch, launch](const KernelArguments& arguments) {
    logits->Run(arguments, arguments.workspace + scratch, [&](const LogitChunk& chunk) {
      launch(arguments, chunk, logits->chunks().vocabulary);
    });
  };
  return kernel;
}

}  // namespace syntra::gpu
