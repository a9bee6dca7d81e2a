// SPDX-License-Identifier: Apache-2.0
// attention_weights on the CPU: row by row, where it is stored.
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
        scores_(z_, call.inputs, QueryBlocks(z_, call.inputs, /*tile_bytes=*/0), parts_),
        log_sum_exp_(parts_.thread.PlaceFloats(1)),
        row_(parts_.thread.PlaceFloats(z_.keys)),
        accumulate_(Accumulates(call, 0)) {}

  const WorkspaceParts& parts() const { return parts_; }

  void Run(const KernelArguments& arguments) const {
    ParallelTasks(z_.batch * z_.heads, [&](int64_t number) {
      const WorkUnit unit{arguments, number / z_.heads, number % z_.heads,
                          parts_.In(arguments.workspace)};
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
  WorkspaceParts parts_;
  ScoreProducts scores_;
  size_t log_sum_exp_, row_;
  bool accumulate_;
};

}  // namespace
}  // namespace attention

std::optional<BoundKernel> cpu_attention_weights(const OpCall& call) {
  return attention::BindPass<attention::Weights>("attention_weights", call);
}

}  // namespace syntra
