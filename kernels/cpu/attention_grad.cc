// SPDX-License-Identifier: Apache-2.0
// attention_grad on the CPU. Tiles of probabilities P are recomputed from log_sum_exp; with dP = dY
// V^T and D_i = sum_j dP_ij P_ij = dy_i . y_i, the gradient of the scores is dS = P (dP - D) (Dao
// et al. 2022, FlashAttention, appendix B.4).
//
// A unit of work is one (example, head). If the gradient of a table or of positions is needed, it
// is one head, so that one thread sums its examples in order. Each unit has its own gradient of the
// bias (one number per difference of key and query). These, and sums over heads, are added at the
// end, also in order, and so are the entries beyond bias_reach.
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

constexpr int64_t kTileBytes = 256 << 10;

// The products for one shape of query blocks.
struct BlockProducts {
  Gemm d_value, d_probabilities, d_query, d_key, d_u, d_positions;
  // For groups of examples that share their probabilities. `first` overwrites instead of adding.
  Gemm group_d_value, group_first, group_next;
};

class Backward {
 public:
  explicit Backward(const OpCall& call);

  const WorkspaceParts& parts() const { return parts_; }
  void Run(const KernelArguments& arguments) const;

 private:
  // Where a head's sums over examples go; null: not needed.
  struct HeadSums {
    float *table = nullptr, *positions = nullptr;
  };

  void BindProducts();
  void LayOutScratch();

  HeadSums StartHead(const KernelArguments& arguments, int64_t h) const;
  void RunUnit(const WorkUnit& unit, bool masked, const HeadSums& sums) const;
  const float* LogSumExp(const float* all, const QueryBlock& block, const Workspace& w) const;
  void ScoreGradients(const WorkUnit& unit, const QueryBlock& block, const RowTerms& terms,
                      const Tile& tile, const HeadSums& sums) const;
  void FeatureGradients(const WorkUnit& unit, const QueryBlock& block, const void* d_scores,
                        float* d_positions) const;
  // Which examples need no mask, and the list of those that are computed together.
  struct Examples {
    const uint8_t* whole;
    std::span<const int64_t> shared;
  };
  void RunHeads(const KernelArguments& arguments, const Examples& examples) const;
  void RunUnits(const KernelArguments& arguments, const Examples& examples) const;
  void RunSharedHead(const KernelArguments& arguments, int64_t h, std::span<const int64_t> examples,
                     const HeadSums& sums) const;
  void RunSharedGroup(const KernelArguments& arguments, int64_t h,
                      std::span<const int64_t> examples, bool first, bool d_scores) const;
  // Where a unit adds the gradient of the bias: the entry for difference 0. `slot` is its example,
  // or the batch size for the examples that share their probabilities.
  float* BiasSums(const KernelArguments& arguments, int64_t h, int64_t slot) const;
  void SumBias(const KernelArguments& arguments) const;
  void SumHeads(const KernelArguments& arguments) const;
  void Store(const WorkUnit& unit, Input g, const RowRun& run, const float* from,
             int64_t stride) const;
  void AddKeyProduct(const Gemm& product, const void* x, const void* y,
                     std::span<const RowRun> runs, size_t sums, const Workspace& w) const;

  float* Floats(const Workspace& w, size_t offset) const {
    return reinterpret_cast<float*>(w.thread + offset);
  }
  bool wants(Input input) const { return wants_[input]; }
  int64_t differences() const { return z_.queries + z_.keys - 1; }  // of key and query position

  Dimensions z_;
  DType dtype_;
  HeadLayout y_layout_;                         // of y and of dy
  HeadLayout gradients_[kGradientOutputCount];  // of activations
  bool wants_[kGradientOutputCount];
  bool accumulate_[kGradientOutputCount] = {};
  bool by_position_, sums_heads_, wants_scores_ = false, spreads_ = false;
  bool table_partial_ = false, positions_partial_ = false;
  QueryBlocks blocks_;
  WorkspaceParts parts_;
  ScoreProducts scores_;
  std::unique_ptr<SharedProbabilities> shared_;
  std::vector<int64_t> d_offsets_;  // where each block begins in a head's shared dP
  std::vector<BlockProducts> products_;
  size_t whole_, examples_, table_sums_ = 0, positions_sums_ = 0, bias_sums_ = 0;
  size_t scores_tile_, d_tile_, rounded_ = 0, rounded_positions_ = 0, value_, dy_, d_key_, d_value_,
                                d_runs_ = 0, d_rows_, row_dots_;
};

Backward::Backward(const OpCall& call)
    : z_(DimensionsOf(call.attributes, call.inputs)),
      dtype_(call.inputs[kValue].dtype),
      blocks_(z_, call.inputs, kTileBytes),
      scores_(z_, call.inputs, blocks_, parts_) {
  for (int g = 0; g < kGradientOutputCount; ++g) {
    wants_[g] = call.outputs[g].present();
    if (g < std::ssize(call.accumulate)) accumulate_[g] = call.accumulate[g];
    if (g != kValue && wants_[g]) wants_scores_ = true;
  }
  y_layout_ = HeadLayout(call.inputs[kGivenY], z_.heads);
  for (const Input g : {kQuery, kKey, kValue, kU, kA, kB}) {
    if (wants(g)) gradients_[g] = HeadLayout(call.outputs[g], z_.heads);
  }
  by_position_ = scores_.has(kKeyPositions);
  sums_heads_ = wants(kTable) || wants(kPositions) ||
                (wants(kBias) && SharedProbabilities::Serves(z_, call.inputs));
  spreads_ =
      wants(kTable) || wants(kA) || wants(kB) || (by_position_ && (wants(kU) || wants(kPositions)));
  table_partial_ = wants(kTable) && z_.table_heads == 1 && z_.heads > 1;
  positions_partial_ = wants(kPositions) && !z_.positions_per_head && z_.heads > 1;
  if (SharedProbabilities::Serves(z_, call.inputs)) {
    shared_ = std::make_unique<SharedProbabilities>(z_, dtype_, blocks_, parts_.call);
  }
  LayOutScratch();
  scores_.BindProducts(call.inputs, parts_);
  BindProducts();
}

void Backward::LayOutScratch() {
  const size_t element = SizeOf(dtype_);
  const int64_t tile = blocks_.LargestTile(), rows = blocks_.MostRows();
  whole_ = parts_.call.Place(z_.batch);
  examples_ = parts_.call.Place(z_.batch * sizeof(int64_t));
  if (table_partial_) {
    table_sums_ = parts_.call.PlaceFloats(z_.heads * z_.table_queries * z_.table_keys);
  }
  if (positions_partial_) {
    positions_sums_ = parts_.call.PlaceFloats(z_.heads * z_.features * z_.position_extent);
  }
  if (wants(kBias)) {
    bias_sums_ = parts_.call.PlaceFloats((z_.batch + 1) * z_.heads * differences());
  }
  int64_t d_elements = tile, dy_rows = rows;
  const int64_t width = z_.head_size * (shared_ ? shared_->group_size() : 1);
  if (shared_) {
    d_elements = 0;
    for (const QueryBlock& block : blocks_.all()) {
      d_offsets_.push_back(d_elements);
      d_elements += static_cast<int64_t>(AlignUp(block.rows * block.keys, 32));
    }
    dy_rows = z_.queries;
  }
  scores_tile_ = parts_.thread.PlaceFloats(tile);
  d_tile_ = parts_.thread.PlaceFloats(d_elements);
  if (dtype_ == DType::kBF16) {
    rounded_ = parts_.thread.Place(tile * element);
    if (by_position_) rounded_positions_ = parts_.thread.Place(rows * scores_.extent() * element);
  }
  value_ = parts_.thread.Place(blocks_.GatheredKeys() * width * element);
  dy_ = parts_.thread.Place(dy_rows * width * element);
  d_key_ = parts_.thread.PlaceFloats(z_.keys * z_.head_size);
  d_value_ = parts_.thread.PlaceFloats(z_.keys * width);
  if (blocks_.AreRuns()) d_runs_ = parts_.thread.PlaceFloats(blocks_.GatheredKeys() * z_.head_size);
  d_rows_ = parts_.thread.PlaceFloats(rows * std::max(z_.head_size, z_.features));
  row_dots_ = parts_.thread.PlaceFloats(z_.queries + rows);
}

void Backward::BindProducts() {
  for (const QueryBlock& shape : blocks_.Shapes()) {
    const int64_t rows = shape.rows, keys = shape.keys, size = z_.head_size;
    const bool runs = blocks_.AreRuns();
    const int64_t positions = by_position_ ? scores_.extent() : keys;
    const GemmProblem by_row{.m = rows, .n = keys, .k = size, .transpose_b = true, .ab = dtype_};
    const GemmProblem to_row{.m = rows, .n = size, .k = keys, .ab = dtype_};
    const GemmProblem to_key{
        .m = keys, .n = size, .k = rows, .transpose_a = true, .ab = dtype_, .accumulate = !runs};
    BlockProducts p;
    if (wants(kValue)) p.d_value = parts_.Bind(to_key);
    if (wants_scores_) p.d_probabilities = parts_.Bind(by_row);
    if (wants(kQuery)) p.d_query = parts_.Bind(to_row);
    if (wants(kKey)) p.d_key = parts_.Bind(to_key);
    if (wants(kU)) {
      p.d_u = parts_.Bind({.m = rows,
                           .n = z_.features,
                           .k = positions,
                           .transpose_b = true,
                           .b_stride = z_.position_extent,
                           .ab = dtype_});
    }
    if (wants(kPositions)) {
      p.d_positions = parts_.Bind({.m = z_.features,
                                   .n = positions,
                                   .k = rows,
                                   .transpose_a = true,
                                   .c_stride = z_.position_extent,
                                   .ab = dtype_,
                                   .accumulate = true});
    }
    if (shared_) {
      GemmProblem group = to_key;
      group.n = size * shared_->group_size();
      if (wants(kValue)) p.group_d_value = parts_.Bind(group);
      group = by_row;
      group.k = size * shared_->group_size();
      if (wants_scores_) p.group_first = parts_.Bind(group);
      group.accumulate = true;
      if (wants_scores_) p.group_next = parts_.Bind(group);
    }
    products_.push_back(std::move(p));
  }
}

// Stores f32 rows, `stride` elements apart, as rows of output g, an activation.
void Backward::Store(const WorkUnit& unit, Input g, const RowRun& run, const float* from,
                     int64_t stride) const {
  StoreRows(from, stride, nullptr,
            gradients_[g].RowsOf(unit.arguments.outputs[g], unit.b, unit.h, run), accumulate_[g]);
}

// Adds x^T y, whose rows are the keys of a block, to the sums of all keys.
void Backward::AddKeyProduct(const Gemm& product, const void* x, const void* y,
                             std::span<const RowRun> runs, size_t sums, const Workspace& w) const {
  if (runs.empty()) return product.Run(x, y, Floats(w, sums), w.products);
  const float* from = Floats(w, d_runs_);
  product.Run(x, y, Floats(w, d_runs_), w.products);
  const int64_t width = z_.head_size;
  for (const RowRun& run : runs) {
    if (run.first >= 0) {
      const HeadRows to{.dtype = DType::kF32,
                        .data = Floats(w, sums) + run.first * width,
                        .stride = width * run.step,
                        .count = run.count,
                        .width = width};
      StoreRows(from, width, nullptr, to, /*accumulate=*/true);
    }
    from += run.count * width;
  }
}

// Sums start from zero or, if they accumulate, from the value in memory. SumHeads finishes sums
// over heads.
Backward::HeadSums Backward::StartHead(const KernelArguments& arguments, int64_t h) const {
  const auto start = [&](Input g, bool partial, size_t offset, int64_t each) -> float* {
    if (!wants(g)) return nullptr;
    float* sums = partial ? reinterpret_cast<float*>(arguments.workspace + offset)
                          : static_cast<float*>(arguments.outputs[g]);
    sums += h * each;
    if (partial || !accumulate_[g]) std::fill_n(sums, each, 0.0f);
    return sums;
  };
  return {start(kTable, table_partial_, table_sums_, z_.table_queries * z_.table_keys),
          start(kPositions, positions_partial_, positions_sums_, z_.features * z_.position_extent)};
}

float* Backward::BiasSums(const KernelArguments& arguments, int64_t h, int64_t slot) const {
  if (!wants(kBias)) return nullptr;
  return reinterpret_cast<float*>(arguments.workspace + bias_sums_) +
         (slot * z_.heads + h) * differences() + z_.queries - 1;
}

void Backward::SumBias(const KernelArguments& arguments) const {
  const int64_t size = z_.heads * differences();
  const auto* sums = reinterpret_cast<const float*>(arguments.workspace + bias_sums_);
  auto* out = static_cast<float*>(arguments.outputs[kBias]);
  ParallelFor(size, 1024, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t k = i % differences(), line = i - k;
      const auto [first, last] = z_.EntriesOf(k);
      double sum = accumulate_[kBias] ? out[i] : 0.0;
      for (int64_t slot = 0; slot <= z_.batch; ++slot) {
        for (int64_t e = first; e < last; ++e) sum += sums[slot * size + line + e];
      }
      out[i] = static_cast<float>(sum);
    }
  });
}

void Backward::SumHeads(const KernelArguments& arguments) const {
  const auto sum = [&](Input g, size_t offset, int64_t each) {
    const auto* partial = reinterpret_cast<const float*>(arguments.workspace + offset);
    auto* out = static_cast<float*>(arguments.outputs[g]);
    ParallelFor(each, 4096, [&](int64_t begin, int64_t end) {
      if (!accumulate_[g]) std::fill(out + begin, out + end, 0.0f);
      for (int64_t h = 0; h < z_.heads; ++h) {
        AddTo(out + begin, partial + h * each + begin, end - begin);
      }
    });
  };
  if (table_partial_) sum(kTable, table_sums_, z_.table_queries * z_.table_keys);
  if (positions_partial_) sum(kPositions, positions_sums_, z_.features * z_.position_extent);
}

void Backward::FeatureGradients(const WorkUnit& unit, const QueryBlock& block, const void* d_scores,
                                float* d_positions) const {
  const Workspace& w = unit.workspace;
  const BlockProducts& p = products_[block.shape];
  float* d_rows = Floats(w, d_rows_);
  if (wants(kU)) {
    p.d_u.Run(d_scores, scores_.positions(unit), d_rows, w.products);
    Store(unit, kU, block.queries(), d_rows, z_.features);
  }
  if (d_positions) p.d_positions.Run(scores_.u(w), d_scores, d_positions, w.products);
}

void Backward::ScoreGradients(const WorkUnit& unit, const QueryBlock& block, const RowTerms& terms,
                              const Tile& tile, const HeadSums& sums) const {
  const KernelArguments& arguments = unit.arguments;
  const Workspace& w = unit.workspace;
  const BlockProducts& p = products_[block.shape];
  float *d_scores = Floats(w, d_tile_), *row_dots = Floats(w, row_dots_);
  p.d_probabilities.Run(w.thread + dy_, w.thread + value_, d_scores, w.products);
  const auto rows_of = [&](int input) {
    return y_layout_.RowsOf(arguments.inputs[input], unit.b, unit.h, block.queries());
  };
  RowDots(rows_of(kGivenDY), rows_of(kGivenY), row_dots);
  std::byte* rounded = dtype_ == DType::kBF16 ? w.thread + rounded_ : nullptr;
  ScoreGradient(tile, d_scores, row_dots,
                {.keep = spreads_ || !rounded || (wants(kBias) && blocks_.AreRuns()),
                 .rounded = rounded,
                 .bias = BiasSums(arguments, unit.h, unit.b)});
  const void* operand = rounded ? static_cast<const void*>(rounded) : d_scores;
  const void* features = operand;
  if (spreads_) {
    RowGradients gradients{
        .table = sums.table, .accumulate_a = accumulate_[kA], .accumulate_b = accumulate_[kB]};
    if (wants(kA)) gradients.a = gradients_[kA].AllRowsOf(arguments.outputs[kA], unit.b, unit.h);
    if (wants(kB)) gradients.b = gradients_[kB].AllRowsOf(arguments.outputs[kB], unit.b, unit.h);
    if (by_position_ && scores_.has(kU)) {
      gradients.position_scores = scores_.position_scores(w);
      features = gradients.position_scores;
      if (rounded) features = gradients.rounded_position_scores = w.thread + rounded_positions_;
    }
    SpreadGradient(terms, tile, d_scores, gradients);
  }
  if (wants(kQuery)) {
    p.d_query.Run(operand, scores_.key(w), Floats(w, d_rows_), w.products);
    Store(unit, kQuery, block.queries(), Floats(w, d_rows_), z_.head_size);
  }
  if (wants(kKey)) AddKeyProduct(p.d_key, operand, scores_.query(w), tile.runs, d_key_, w);
  if (scores_.has(kU)) FeatureGradients(unit, block, features, sums.positions);
}

// The log_sum_exp of a block's queries; `all`: that of all queries.
const float* Backward::LogSumExp(const float* all, const QueryBlock& block,
                                 const Workspace& w) const {
  if (block.step == 1) return all + block.first;
  float* rows = Floats(w, row_dots_);  // which are written later
  for (int64_t i = 0; i < block.rows; ++i) rows[i] = all[block.first + i * block.step];
  return rows;
}

void Backward::RunUnit(const WorkUnit& unit, bool masked, const HeadSums& sums) const {
  const Workspace& w = unit.workspace;
  const Inputs& inputs = unit.arguments.inputs;
  const RowTerms terms = scores_.Terms(unit, masked);
  const int64_t size = z_.head_size;
  const auto* log_sum_exp = static_cast<const float*>(inputs[kGivenLogSumExp]) +
                            (unit.b * z_.heads + unit.h) * z_.queries;
  const auto gather = [&](std::span<const RowRun> runs) {
    scores_.GatherKeys(unit, runs, w.thread + value_);
  };
  if (!blocks_.AreRuns()) gather({});
  if (wants(kKey)) std::fill_n(Floats(w, d_key_), z_.keys * size, 0.0f);
  if (wants(kValue)) std::fill_n(Floats(w, d_value_), z_.keys * size, 0.0f);
  for (const QueryBlock& block : blocks_.all()) {
    const std::span<const RowRun> runs = scores_.RunsOf(unit, block);
    if (!runs.empty()) gather(runs);
    Tile tile = scores_.TileOf(block, runs, Floats(w, scores_tile_), w);
    scores_.Fill(unit, block, tile);
    std::byte* rounded = dtype_ == DType::kBF16 ? w.thread + rounded_ : nullptr;
    Probabilities(terms, tile, LogSumExp(log_sum_exp, block, w), rounded);
    GatherRows(y_layout_.RowsOf(inputs[kGivenDY], unit.b, unit.h, block.queries()), w.thread + dy_,
               size);
    if (wants(kValue)) {
      AddKeyProduct(products_[block.shape].d_value,
                    rounded ? static_cast<const void*>(rounded) : tile.scores, w.thread + dy_, runs,
                    d_value_, w);
    }
    if (wants_scores_) ScoreGradients(unit, block, terms, tile, sums);
  }
  if (wants(kKey)) Store(unit, kKey, {0, z_.keys}, Floats(w, d_key_), size);
  if (wants(kValue)) Store(unit, kValue, {0, z_.keys}, Floats(w, d_value_), size);
}

// dV of a group of examples, and their part of the head's dP.
void Backward::RunSharedGroup(const KernelArguments& arguments, int64_t h,
                              std::span<const int64_t> examples, bool first, bool d_scores) const {
  const Workspace w = parts_.In(arguments.workspace);
  const int64_t width = shared_->group_size() * z_.head_size;
  shared_->GatherGroup(arguments.inputs[kGivenDY], y_layout_, examples, h, w.thread + dy_);
  if (d_scores) {
    shared_->GatherGroup(arguments.inputs[kValue], scores_.layout(kValue), examples, h,
                         w.thread + value_);
  }
  if (wants(kValue)) std::fill_n(Floats(w, d_value_), z_.keys * width, 0.0f);
  for (int64_t i = 0; i < std::ssize(blocks_.all()); ++i) {
    const QueryBlock& block = blocks_.all()[i];
    const BlockProducts& p = products_[block.shape];
    const std::byte* dy = w.thread + dy_ + block.first * width * SizeOf(dtype_);
    if (wants(kValue)) {
      p.group_d_value.Run(shared_->operand(h, i, w), dy, Floats(w, d_value_), w.products);
    }
    if (d_scores) {
      (first ? p.group_first : p.group_next)
          .Run(dy, w.thread + value_, Floats(w, d_tile_) + d_offsets_[i], w.products);
    }
  }
  for (int64_t g = 0; wants(kValue) && g < std::ssize(examples); ++g) {
    Store({arguments, examples[g], h, w}, kValue, {0, z_.keys},
          Floats(w, d_value_) + g * z_.head_size, width);
  }
}

void Backward::RunSharedHead(const KernelArguments& arguments, int64_t h,
                             std::span<const int64_t> examples, const HeadSums& sums) const {
  const Workspace w = parts_.In(arguments.workspace);
  for (int64_t from = 0; from < std::ssize(examples); from += shared_->group_size()) {
    RunSharedGroup(arguments, h, shared_->GroupFrom(examples, from), from == 0, true);
  }
  float *row_dots = Floats(w, row_dots_), *of_example = row_dots + z_.queries;
  const RowTerms terms = scores_.Terms({arguments, 0, h, w}, /*masked=*/false);
  for (int64_t i = 0; i < std::ssize(blocks_.all()); ++i) {
    const QueryBlock& block = blocks_.all()[i];
    std::fill_n(row_dots, block.rows, 0.0f);
    for (const int64_t example : examples) {
      const auto rows_of = [&](int input) {
        return y_layout_.RowsOf(arguments.inputs[input], example, h, block.queries());
      };
      RowDots(rows_of(kGivenDY), rows_of(kGivenY), of_example);
      AddTo(row_dots, of_example, block.rows);
    }
    const Tile tile = scores_.TileOf(block, {}, shared_->exact(h, i, w), w);
    float* d_scores = Floats(w, d_tile_) + d_offsets_[i];
    ScoreGradient(tile, d_scores, row_dots,
                  {.keep = spreads_, .rounded = nullptr, .bias = BiasSums(arguments, h, z_.batch)});
    if (spreads_) SpreadGradient(terms, tile, d_scores, {.table = sums.table});
  }
}

void Backward::RunHeads(const KernelArguments& arguments, const Examples& examples) const {
  ParallelTasks(z_.heads, [&](int64_t h) {
    const HeadSums sums = StartHead(arguments, h);
    if (!examples.shared.empty()) RunSharedHead(arguments, h, examples.shared, sums);
    for (int64_t b = 0; b < z_.batch; ++b) {
      const bool whole = examples.whole[b] != 0;
      if (whole && !examples.shared.empty()) continue;
      RunUnit({arguments, b, h, parts_.In(arguments.workspace)}, !whole, sums);
    }
  });
  SumHeads(arguments);
}

void Backward::RunUnits(const KernelArguments& arguments, const Examples& examples) const {
  if (!examples.shared.empty()) {
    const int64_t size = shared_->group_size();
    const int64_t groups = DivideUp(std::ssize(examples.shared), size);
    ParallelTasks(z_.heads * groups, [&](int64_t number) {
      RunSharedGroup(arguments, number / groups,
                     shared_->GroupFrom(examples.shared, number % groups * size), false, false);
    });
  }
  ParallelTasks(z_.batch * z_.heads, [&](int64_t number) {
    const int64_t b = number / z_.heads;
    const bool whole = examples.whole[b] != 0;
    if (whole && !examples.shared.empty()) return;
    RunUnit({arguments, b, number % z_.heads, parts_.In(arguments.workspace)}, !whole, {});
  });
}

void Backward::Run(const KernelArguments& arguments) const {
  auto* whole = reinterpret_cast<uint8_t*>(arguments.workspace + whole_);
  auto* examples = reinterpret_cast<int64_t*>(arguments.workspace + examples_);
  const int64_t count = FindWholeExamples(z_, arguments.inputs, whole, examples);
  const bool shared = shared_ && count > 0;
  if (wants(kBias)) {
    std::fill_n(reinterpret_cast<float*>(arguments.workspace + bias_sums_),
                (z_.batch + 1) * z_.heads * differences(), 0.0f);
  }
  scores_.RoundPositions(arguments.inputs, parts_.In(arguments.workspace));
  if (shared) {
    const int64_t blocks = std::ssize(blocks_.all());
    ParallelTasks(z_.heads * blocks, [&](int64_t number) {
      shared_->ComputeBlock({arguments, 0, number / blocks, parts_.In(arguments.workspace)},
                            scores_, number % blocks);
    });
  }
  const Examples split{whole, {examples, shared ? static_cast<size_t>(count) : 0}};
  if (sums_heads_) {
    RunHeads(arguments, split);
  } else {
    RunUnits(arguments, split);
  }
  if (wants(kBias)) SumBias(arguments);
}

}  // namespace
}  // namespace attention

std::optional<BoundKernel> cpu_attention_grad(const OpCall& call) {
  return attention::BindPass<attention::Backward>("attention_grad", call);
}

}  // namespace syntra
