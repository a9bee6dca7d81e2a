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

  size_t workspace_bytes() const {
    return call_.bytes() + ThreadCount() * (thread_.bytes() + AlignUp(product_bytes_));
  }
  void Run(const KernelArguments& arguments) const;

 private:
  Workspace WorkspaceOf(std::byte* base) const;
  void RunHead(const KernelArguments& arguments, int64_t b, int64_t h, bool masked) const;
  void RunShared(const KernelArguments& arguments, const int64_t* examples, int64_t count) const;
  void StoreOutputs(const KernelArguments& arguments, int64_t b, int64_t h, const QueryBlock& block,
                    const float* y, int64_t y_stride, const float* scale,
                    const float* log_sum_exp) const;

  Dimensions z_;
  DType dtype_;
  HeadRows y_rows_;
  std::vector<bool> accumulate_;
  QueryBlocks blocks_;
  bool few_;
  WorkspaceLayout call_, thread_;
  ScoreProducts scores_;
  std::unique_ptr<SharedProbabilities> shared_;
  std::vector<Gemm> weigh_;         // per shape: [rows, keys] x [keys, K]
  std::vector<Gemm> weigh_groups_;  // the same for the values of a group of examples
  size_t whole_, examples_, scores_tile_, rounded_tile_ = 0, value_, y_, row_numbers_;
  size_t product_bytes_ = 0;
  int threads_ = ThreadCount();
};

Forward::Forward(const OpCall& call)
    : z_(DimensionsOf(call.attributes, call.inputs)),
      dtype_(call.inputs[kValue].dtype),
      accumulate_(call.accumulate),
      blocks_(z_, call.inputs, kTileBytes),
      few_(z_.queries <= kFewQueries && !blocks_.AreRuns()),
      scores_(z_, call.inputs, blocks_, call_, thread_) {
  accumulate_.resize(kOutputCount, false);
  if (call.outputs[kY].present()) y_rows_ = HeadRows(call.outputs[kY], z_.heads);
  product_bytes_ = scores_.product_bytes();
  whole_ = call_.Place(z_.batch);
  examples_ = call_.Place(z_.batch * sizeof(int64_t));
  const int64_t tile = blocks_.LargestTile(), rows = blocks_.MostRows();
  scores_tile_ = thread_.PlaceFloats(tile);
  if (dtype_ == DType::kBF16) rounded_tile_ = thread_.Place(tile * SizeOf(dtype_));
  if (!few_ && SharedProbabilities::Serves(z_, call.inputs)) {
    shared_ = std::make_unique<SharedProbabilities>(z_, dtype_, blocks_, call_);
  }
  const int64_t width = z_.head_size * (shared_ ? shared_->group_size() : 1);
  value_ = thread_.Place(blocks_.GatheredKeys() * width * SizeOf(dtype_));
  y_ = thread_.PlaceFloats(rows * width);
  row_numbers_ = thread_.PlaceFloats(2 * rows);
  for (const QueryBlock& shape : blocks_.Shapes()) {
    GemmProblem problem{.m = shape.rows, .n = z_.head_size, .k = shape.keys, .ab = dtype_};
    weigh_.emplace_back(problem, GemmThreads::kCaller);
    product_bytes_ = std::max(product_bytes_, weigh_.back().workspace_bytes());
    if (!shared_) continue;
    problem.n = width;
    weigh_groups_.emplace_back(problem, GemmThreads::kCaller);
    product_bytes_ = std::max(product_bytes_, weigh_groups_.back().workspace_bytes());
  }
}

Workspace Forward::WorkspaceOf(std::byte* base) const {
  const size_t each = thread_.bytes() + AlignUp(product_bytes_);
  std::byte* thread = base + call_.bytes() + ThreadIndex() * each;
  return {base, thread, thread + thread_.bytes()};
}

void Forward::StoreOutputs(const KernelArguments& arguments, int64_t b, int64_t h,
                           const QueryBlock& block, const float* y, int64_t y_stride,
                           const float* scale, const float* log_sum_exp) const {
  if (arguments.outputs[kY]) {
    StoreRows(dtype_, y, y_stride, scale, y_rows_.At(arguments.outputs[kY], b, block.first, h),
              y_rows_.stride * block.step, block.rows, y_rows_.width, accumulate_[kY]);
  }
  if (arguments.outputs[kLogSumExp]) {
    float* out = static_cast<float*>(arguments.outputs[kLogSumExp]) +
                 (b * z_.heads + h) * z_.queries + block.first;
    if (block.step == 1) {
      StoreRows(DType::kF32, log_sum_exp, block.rows, nullptr, out, block.rows, 1, block.rows,
                accumulate_[kLogSumExp]);
    } else {
      StoreRows(DType::kF32, log_sum_exp, 1, nullptr, out, block.step, block.rows, 1,
                accumulate_[kLogSumExp]);
    }
  }
}

void Forward::RunHead(const KernelArguments& arguments, int64_t b, int64_t h, bool masked) const {
  const Workspace w = WorkspaceOf(arguments.workspace);
  auto* scores = reinterpret_cast<float*>(w.thread + scores_tile_);
  auto* y = reinterpret_cast<float*>(w.thread + y_);
  auto* log_sum_exp = reinterpret_cast<float*>(w.thread + row_numbers_);
  const RowTerms terms = scores_.Terms(arguments.inputs, b, h, masked);
  const HeadRows& value_rows = scores_.rows_of(kValue);
  const std::byte* values = value_rows.At(arguments.inputs[kValue], b, 0, h);
  const auto gather = [&](std::span<const KeyRun> runs) {
    scores_.GatherKeys(arguments.inputs, b, h, runs, w.thread + value_, w);
  };
  if (!few_ && !blocks_.AreRuns()) gather({});
  for (const QueryBlock& block : blocks_.all()) {
    float* inverse_sum = log_sum_exp + block.rows;
    const std::span<const KeyRun> runs = scores_.RunsOf(arguments.inputs, h, block, w);
    if (!runs.empty()) gather(runs);
    Tile tile = scores_.TileOf(block, runs, scores, w);
    // In decoding, keys after the current position do not exist yet.
    if (few_ && terms.pattern.causal && !terms.prefix_ends) {
      tile.keys = std::clamp<int64_t>(terms.start + block.first + block.rows, 1, block.keys);
    }
    if (few_) {
      scores_.FillFew(arguments.inputs, b, h, block, tile, w);
      Softmax(terms, tile, nullptr, log_sum_exp, inverse_sum);
      WeightRows(dtype_, tile, values, value_rows.stride, value_rows.width, y);
    } else {
      scores_.Fill(arguments.inputs, b, h, block, tile, w);
      std::byte* rounded = dtype_ == DType::kBF16 ? w.thread + rounded_tile_ : nullptr;
      Softmax(terms, tile, rounded, log_sum_exp, inverse_sum);
      weigh_[block.shape].Run(rounded ? static_cast<const void*>(rounded) : scores,
                              w.thread + value_, y, w.products);
    }
    StoreOutputs(arguments, b, h, block, y, z_.head_size, inverse_sum, log_sum_exp);
  }
}

void Forward::RunShared(const KernelArguments& arguments, const int64_t* examples,
                        int64_t count) const {
  const int64_t blocks = std::ssize(blocks_.all());
  ParallelTasks(z_.heads * blocks, [&](int64_t unit) {
    shared_->ComputeBlock(arguments.inputs, scores_, unit / blocks, unit % blocks,
                          WorkspaceOf(arguments.workspace));
  });
  const int64_t size = shared_->group_size(), groups = DivideUp(count, size);
  ParallelTasks(z_.heads * groups, [&](int64_t unit) {
    const Workspace w = WorkspaceOf(arguments.workspace);
    auto* y = reinterpret_cast<float*>(w.thread + y_);
    const int64_t h = unit / groups, from = unit % groups * size;
    const int64_t members = std::min(size, count - from);
    shared_->GatherGroup(arguments.inputs[kValue], scores_.rows_of(kValue), examples + from,
                         members, h, w.thread + value_);
    for (int64_t i = 0; i < blocks; ++i) {
      const QueryBlock& block = blocks_.all()[i];
      weigh_groups_[block.shape].Run(shared_->operand(h, i, w), w.thread + value_, y, w.products);
      for (int64_t g = 0; g < members; ++g) {
        StoreOutputs(arguments, examples[from + g], h, block, y + g * z_.head_size,
                     size * z_.head_size, nullptr, shared_->log_sum_exp(h, w) + block.first);
      }
    }
  });
}

void Forward::Run(const KernelArguments& arguments) const {
  SYNTRA_CHECK(ThreadCount() <= threads_, "attention was bound for {} threads", threads_);
  auto* whole = reinterpret_cast<uint8_t*>(arguments.workspace + whole_);
  auto* examples = reinterpret_cast<int64_t*>(arguments.workspace + examples_);
  const int64_t count = FindWholeExamples(z_, arguments.inputs, whole, examples);
  if (!few_) scores_.RoundPositions(arguments.inputs, WorkspaceOf(arguments.workspace));
  if (shared_ && count > 0) RunShared(arguments, examples, count);
  if (shared_ && count == z_.batch) return;
  ParallelTasks(z_.batch * z_.heads, [&](int64_t unit) {
    const int64_t b = unit / z_.heads;
    if (!(shared_ && whole[b])) RunHead(arguments, b, unit % z_.heads, !whole[b]);
  });
}

}  // namespace
}  // namespace attention

std::optional<BoundKernel> cpu_attention(const OpCall& call) {
  return attention::BindPass<attention::Forward>(call);
}

}  // namespace syntra
