// SPDX-License-Identifier: Apache-2.0
// How the attention kernels split their work into tiles, and the matrix products that fill a tile:
// q . k and u . p. A unit of work is one (example, head). Its operands are copied to dense rows,
// because products with dense rows are 10 % faster than with strided ones.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "base/error.h"
#include "core/thread.h"
#include "kernels/attention_call.h"
#include "kernels/bound_kernel.h"
#include "kernels/cpu/attention/blocks.h"
#include "kernels/cpu/attention/rows.h"
#include "kernels/cpu/gemm.h"
#include "kernels/workspace.h"

namespace syntra::attention {

// An activation [B, rows, H * width], whose rows may be columns of a wider matrix.
class HeadLayout {
 public:
  HeadLayout() = default;  // absent
  HeadLayout(const TensorType& type, int64_t heads)
      : dtype_(type.dtype),
        rows_(type.shape[1]),
        width_(type.shape[2] / heads),
        stride_(type.row_pitch()) {}

  // Rows of head h of example b in the activation at `base`.
  HeadRows RowsOf(void* base, int64_t b, int64_t h, const RowRun& run) const {
    const int64_t begin = (b * rows_ + run.first) * stride_ + h * width_;
    return {dtype_, static_cast<std::byte*>(base) + begin * static_cast<int64_t>(SizeOf(dtype_)),
            stride_ * run.step, run.count, width_};
  }
  HeadRows AllRowsOf(void* base, int64_t b, int64_t h) const {
    return RowsOf(base, b, h, {0, rows_});
  }
  int64_t rows() const { return rows_; }

 private:
  DType dtype_ = DType::kF32;
  int64_t rows_ = 0, width_ = 0;
  int64_t stride_ = 0;  // elements from one row to the next
};

// The workspace of the call and of the calling thread.
struct Workspace {
  std::byte* call;
  std::byte* thread;
  std::byte* products;  // for Gemm::Run
};

// The parts of a kernel's workspace: the call's, and those that each thread has.
class WorkspaceParts {
 public:
  WorkspaceLayout call, thread;

  // Binds a product that any thread may run, with its Workspace::products.
  Gemm Bind(const GemmProblem& problem) {
    Gemm gemm(problem, GemmThreads::kCaller);
    product_bytes_ = std::max(product_bytes_, AlignUp(gemm.workspace_bytes()));
    return gemm;
  }
  size_t bytes(int threads) const { return call.bytes() + threads * thread_bytes(); }
  // That of the calling thread in the workspace at `base`.
  Workspace In(std::byte* base) const {
    std::byte* own = base + call.bytes() + ThreadIndex() * thread_bytes();
    return {base, own, own + thread.bytes()};
  }

 private:
  size_t thread_bytes() const { return thread.bytes() + product_bytes_; }

  size_t product_bytes_ = 0;
};

// A unit of work: head h of example b of a call, on the calling thread.
struct WorkUnit {
  const KernelArguments& arguments;
  int64_t b, h;
  Workspace workspace;
};

class ScoreProducts {
 public:
  // Both add what they need to the parts of the workspace.
  ScoreProducts(const Dimensions& z, std::span<const TensorType> inputs, const QueryBlocks& blocks,
                WorkspaceParts& parts);
  // For all that FillFew does without: RoundPositions, GatherKeys, Fill and the gathered operands.
  void BindProducts(std::span<const TensorType> inputs, WorkspaceParts& parts);

  // Rounds the table of positions to bf16 if needed. Call it once per call, before any tile.
  void RoundPositions(const Inputs& inputs, const Workspace& workspace) const;
  // The keys of a block, where they are runs; else none.
  std::span<const RowRun> RunsOf(const WorkUnit& unit, const QueryBlock& block) const;
  // Copies keys and, to `values`, values to dense rows: those of a block's runs or, without runs,
  // all.
  void GatherKeys(const WorkUnit& unit, std::span<const RowRun> runs, std::byte* values) const;
  // Fills tile.scores and tile.position_scores with the products, or with zeros if there are none.
  // Afterwards query() and u() hold the block's rows.
  void Fill(const WorkUnit& unit, const QueryBlock& block, Tile& tile) const;
  // As Fill, for few queries, without packing.
  void FillFew(const WorkUnit& unit, const QueryBlock& block, Tile& tile) const;
  // `masked`: whether the segments of the example hide anything.
  RowTerms Terms(const WorkUnit& unit, bool masked) const;
  Tile TileOf(const QueryBlock& block, std::span<const RowRun> runs, float* scores,
              const Workspace& workspace) const;

  // The gathered operands of this thread.
  std::byte* query(const Workspace& w) const { return w.thread + query_; }
  std::byte* key(const Workspace& w) const { return w.thread + key_; }
  std::byte* u(const Workspace& w) const { return w.thread + u_; }
  float* position_scores(const Workspace& w) const {
    return reinterpret_cast<float*>(w.thread + position_scores_);
  }
  // The positions [F, N] of the head, in the type of the activations.
  const std::byte* positions(const WorkUnit& unit) const;
  int64_t extent() const { return extent_; }
  bool has(Input input) const { return present_[input]; }
  // The layout of an activation: query, key, value, u, a or b.
  const HeadLayout& layout(Input input) const { return layouts_[input]; }

 private:
  HeadRows RowsOf(const WorkUnit& unit, Input input, const RowRun& run) const {
    return layouts_[input].RowsOf(unit.arguments.inputs[input], unit.b, unit.h, run);
  }
  void Gather(const WorkUnit& unit, Input input, std::span<const RowRun> runs, std::byte* to) const;

  Dimensions z_;
  DType dtype_;
  QueryBlocks blocks_;
  bool present_[kInputCount] = {};
  HeadLayout layouts_[kInputCount];
  bool by_position_ = false;
  int64_t extent_ = 0;
  std::vector<Gemm> dot_, feature_;  // per shape
  size_t query_ = 0, key_ = 0, u_ = 0, position_scores_ = 0, row_scratch_ = 0, runs_ = 0;
  size_t rounded_positions_ = 0;
};

// Sets whole[b] to whether example b is a single segment without padding, so that its mask can be
// ignored. Lists these examples in `examples` and returns how many there are.
int64_t FindWholeExamples(const Dimensions& z, const Inputs& inputs, uint8_t* whole,
                          int64_t* examples);

// The kernel of an op that runs a Pass, which is made from the call.
template <typename Pass>
BoundKernel BindPass(const char* op, const OpCall& call) {
  auto pass = std::make_shared<Pass>(call);
  const int threads = ThreadCount();
  const auto run = [=](const KernelArguments& arguments) {
    SYNTRA_CHECK(ThreadCount() <= threads, "{} was bound for {} threads", op, threads);
    pass->Run(arguments);
  };
  return {.run = run, .workspace_bytes = pass->parts().bytes(threads), .accumulates = true};
}

}  // namespace syntra::attention
