// SPDX-License-Identifier: Apache-2.0
// attention_weights on the CPU: row by row, where it is stored.
#include "base/error.h"
#include "core/thread.h"
#include "kernels/cpu/attention/scores.h"
#include "kernels/operands.h"

namespace syntra {
namespace attention {
namespace {

class Weights {
 public:
  explicit Weights(const OpCall& call)
      : z_(DimensionsOf(call.attributes, call.inputs)),
        scores_(z_, call.inputs, QueryBlocks(z_, call.inputs, /*tile_bytes=*/0), call_, thread_),
        accumulate_(Accumulates(call, 0)) {
    log_sum_exp_ = thread_.PlaceFloats(1);
    row_ = thread_.PlaceFloats(z_.keys);
  }

  size_t workspace_bytes() const { return call_.bytes() + threads_ * thread_.bytes(); }

  void Run(const KernelArguments& arguments) const {
    SYNTRA_CHECK(ThreadCount() <= threads_, "attention_weights was bound for {} threads", threads_);
    ParallelTasks(z_.batch * z_.heads, [&](int64_t number) {
      std::byte* thread = arguments.workspace + call_.bytes() + ThreadIndex() * thread_.bytes();
      const Workspace w{arguments.workspace, thread, nullptr};
      const WorkUnit unit{arguments, number / z_.heads, number % z_.heads, w};
      for (int64_t i = 0; i < z_.queries; ++i) RunRow(unit, i);
    });
  }

 private:
  void RunRow(const WorkUnit& unit, int64_t i) const {
    std::byte* thread = unit.workspace.thread;
    float* out = static_cast<float*>(unit.arguments.outputs[0]) +
                 ((unit.b * z_.heads + unit.h) * z_.queries + i) * z_.keys;
    float* row = accumulate_ ? reinterpret_cast<float*>(thread + row_) : out;
    const QueryBlock block{.first = i, .rows = 1, .keys = z_.keys, .shape = 0, .runs = {}};
    Tile tile = scores_.TileOf(block, {}, row, unit.workspace);
    scores_.FillFew(unit, block, tile);
    Softmax(scores_.Terms(unit, scores_.has(kQuerySegments)), tile, nullptr,
            reinterpret_cast<float*>(thread + log_sum_exp_), nullptr);
    if (accumulate_) AddTo(out, row, z_.keys);
  }

  Dimensions z_;
  WorkspaceLayout call_, thread_;
  ScoreProducts scores_;
  size_t log_sum_exp_ = 0, row_ = 0;
  bool accumulate_;
  int threads_ = ThreadCount();
};

}  // namespace
}  // namespace attention

std::optional<BoundKernel> cpu_attention_weights(const OpCall& call) {
  return attention::BindPass<attention::Weights>(call);
}

}  // namespace syntra
