// SPDX-License-Identifier: Apache-2.0
// attention on the CPU. Each (example, head) is a unit of work. Matrix products fill a tile of
// scores, the softmax runs over its rows while they are in the second-level cache, and another
// product multiplies it with the values.
//
// If scores do not depend on the example (no query, u, a or positions), the probabilities of a head
// are computed once. One product then multiplies them with the values of several examples side by
// side. Padded and packed examples take the general path.
#include <algorithm>
#include <memory>

#include "base/divide.h"
#include "base/error.h"
#include "core/buffer.h"
#include "core/thread.h"
#include "kernels/cpu/attention/scores.h"
#include "kernels/cpu/attention/shared.h"

namespace syntra {
namespace attention {
namespace {

constexpr int64_t kTileBytes = 512 << 10;
// Up to this number of queries, packing operands costs more than it gains.
constexpr int64_t kFewQueries = 8;

class Forward {
 public:
  explicit Forward(const OpCall& call);

  const WorkspaceParts& parts() const { return parts_; }
  void Run(const KernelArguments& arguments) const;

 private:
  void BindProducts(std::span<const TensorType> inputs);
  void RunUnit(const WorkUnit& unit, bool masked) const;
  void RunShared(const KernelArguments& arguments, std::span<const int64_t> examples) const;
  // What was computed for a block of queries.
  struct BlockOutputs {
    const float* y;      // still to be multiplied by `scale`
    int64_t stride;      // elements between rows of y
    const float* scale;  // of each row; null: 1
    const float* log_sum_exp;
  };
  void Store(const WorkUnit& unit, const QueryBlock& block, const BlockOutputs& outputs) const;

  Dimensions z_;
  DType dtype_;
  HeadLayout y_layout_;
  std::vector<bool> accumulate_;
  QueryBlocks blocks_;
  bool few_;
  WorkspaceParts parts_;
  ScoreProducts scores_;
  std::unique_ptr<SharedProbabilities> shared_;
  std::vector<Gemm> weigh_;         // per shape: [rows, keys] x [keys, K]
  std::vector<Gemm> weigh_groups_;  // the same for the values of a group of examples
  int64_t width_;                   // of y: the head of an example or of a group
  size_t whole_, examples_, scores_tile_, rounded_tile_ = 0, value_ = 0, y_, row_numbers_;
};

Forward::Forward(const OpCall& call)
    : z_(DimensionsOf(call.attributes, call.inputs)),
      dtype_(call.inputs[kValue].dtype),
      accumulate_(call.accumulate),
      blocks_(z_, call.inputs, kTileBytes),
      few_(z_.queries <= kFewQueries && !blocks_.AreRuns()),
      scores_(z_, call.inputs, blocks_, parts_),
      width_(z_.head_size) {
  accumulate_.resize(kOutputCount, false);
  if (call.outputs[kY].present()) y_layout_ = HeadLayout(call.outputs[kY], z_.heads);
  whole_ = parts_.call.Place(z_.batch);
  examples_ = parts_.call.Place(z_.batch * sizeof(int64_t));
  scores_tile_ = parts_.thread.PlaceFloats(blocks_.LargestTile());
  if (!few_) BindProducts(call.inputs);
  y_ = parts_.thread.PlaceFloats(blocks_.MostRows() * width_);
  row_numbers_ = parts_.thread.PlaceFloats(2 * blocks_.MostRows());
}

void Forward::BindProducts(std::span<const TensorType> inputs) {
  scores_.BindProducts(inputs, parts_);
  if (SharedProbabilities::Serves(z_, inputs)) {
    shared_ = std::make_unique<SharedProbabilities>(z_, dtype_, blocks_, parts_.call);
    width_ *= shared_->group_size();
  }
  const size_t element = SizeOf(dtype_);
  if (dtype_ == DType::kBF16) rounded_tile_ = parts_.thread.Place(blocks_.LargestTile() * element);
  value_ = parts_.thread.Place(blocks_.GatheredKeys() * width_ * element);
  for (const QueryBlock& shape : blocks_.Shapes()) {
    GemmProblem problem{.m = shape.rows, .n = z_.head_size, .k = shape.keys, .ab = dtype_};
    weigh_.push_back(parts_.Bind(problem));
    problem.n = width_;
    if (shared_) weigh_groups_.push_back(parts_.Bind(problem));
  }
}

void Forward::Store(const WorkUnit& unit, const QueryBlock& block,
                    const BlockOutputs& outputs) const {
  if (void* y = unit.arguments.outputs[kY]) {
    StoreRows(outputs.y, outputs.stride, outputs.scale,
              y_layout_.RowsOf(y, unit.b, unit.h, block.queries()), accumulate_[kY]);
  }
  if (void* log_sum_exp = unit.arguments.outputs[kLogSumExp]) {
    float* out = static_cast<float*>(log_sum_exp) + (unit.b * z_.heads + unit.h) * z_.queries;
    const bool adds = accumulate_[kLogSumExp];
    for (int64_t i = 0; i < block.rows; ++i) {
      float& to = out[block.first + i * block.step];
      to = adds ? to + outputs.log_sum_exp[i] : outputs.log_sum_exp[i];
    }
  }
}

void Forward::RunUnit(const WorkUnit& unit, bool masked) const {
  const Workspace& w = unit.workspace;
  auto* scores = reinterpret_cast<float*>(w.thread + scores_tile_);
  auto* y = reinterpret_cast<float*>(w.thread + y_);
  auto* log_sum_exp = reinterpret_cast<float*>(w.thread + row_numbers_);
  const RowTerms terms = scores_.Terms(unit, masked);
  const HeadRows values =
      scores_.layout(kValue).AllRowsOf(unit.arguments.inputs[kValue], unit.b, unit.h);
  const auto gather = [&](std::span<const RowRun> runs) {
    scores_.GatherKeys(unit, runs, w.thread + value_);
  };
  if (!few_ && !blocks_.AreRuns()) gather({});
  for (const QueryBlock& block : blocks_.all()) {
    float* inverse_sum = log_sum_exp + block.rows;
    const std::span<const RowRun> runs = scores_.RunsOf(unit, block);
    if (!runs.empty()) gather(runs);
    Tile tile = scores_.TileOf(block, runs, scores, w);
    // In decoding, keys after the current position do not exist yet.
    if (few_ && terms.pattern.causal && !terms.prefix_ends) {
      tile.keys = std::clamp<int64_t>(terms.start + block.first + block.rows, 1, block.keys);
    }
    if (few_) {
      scores_.FillFew(unit, block, tile);
      Softmax(terms, tile, nullptr, log_sum_exp, inverse_sum);
      WeightRows(tile, values, y);
    } else {
      scores_.Fill(unit, block, tile);
      std::byte* rounded = dtype_ == DType::kBF16 ? w.thread + rounded_tile_ : nullptr;
      Softmax(terms, tile, rounded, log_sum_exp, inverse_sum);
      weigh_[block.shape].Run(rounded ? static_cast<const void*>(rounded) : scores,
                              w.thread + value_, y, w.products);
    }
    Store(unit, block, {y, z_.head_size, inverse_sum, log_sum_exp});
  }
}

void Forward::RunShared(const KernelArguments& arguments, std::span<const int64_t> examples) const {
  const int64_t blocks = std::ssize(blocks_.all());
  ParallelTasks(z_.heads * blocks, [&](int64_t number) {
    shared_->ComputeBlock({arguments, 0, number / blocks, parts_.In(arguments.workspace)}, scores_,
                          number % blocks);
  });
  const int64_t size = shared_->group_size(), groups = DivideUp(std::ssize(examples), size);
  ParallelTasks(z_.heads * groups, [&](int64_t number) {
    const Workspace w = parts_.In(arguments.workspace);
    auto* y = reinterpret_cast<float*>(w.thread + y_);
    const int64_t h = number / groups;
    const std::span<const int64_t> members = shared_->GroupFrom(examples, number % groups * size);
    shared_->GatherGroup(arguments.inputs[kValue], scores_.layout(kValue), members, h,
                         w.thread + value_);
    for (int64_t i = 0; i < blocks; ++i) {
      const QueryBlock& block = blocks_.all()[i];
      weigh_groups_[block.shape].Run(shared_->operand(h, i, w), w.thread + value_, y, w.products);
      for (int64_t g = 0; g < std::ssize(members); ++g) {
        Store({arguments, members[g], h, w}, block,
              {y + g * z_.head_size, size * z_.head_size, nullptr,
               shared_->log_sum_exp(h, w) + block.first});
      }
    }
  });
}

void Forward::Run(const KernelArguments& arguments) const {
  auto* whole = reinterpret_cast<uint8_t*>(arguments.workspace + whole_);
  auto* examples = reinterpret_cast<int64_t*>(arguments.workspace + examples_);
  const int64_t count = FindWholeExamples(z_, arguments.inputs, whole, examples);
  if (!few_) scores_.RoundPositions(arguments.inputs, parts_.In(arguments.workspace));
  if (shared_ && count > 0) RunShared(arguments, {examples, static_cast<size_t>(count)});
  if (shared_ && count == z_.batch) return;
  ParallelTasks(z_.batch * z_.heads, [&](int64_t number) {
    const int64_t b = number / z_.heads;
    if (shared_ && whole[b]) return;
    RunUnit({arguments, b, number % z_.heads, parts_.In(arguments.workspace)}, !whole[b]);
  });
}

}  // namespace
}  // namespace attention

std::optional<BoundKernel> cpu_attention(const OpCall& call) {
  return attention::BindPass<attention::Forward>("attention", call);
}

}  // namespace syntra
