// SPDX-License-Identifier: Apache-2.0
// Fills tiles of scores with products.
#include "kernels/cpu/attention/scores.h"

#include <algorithm>

namespace syntra::attention {

ScoreProducts::ScoreProducts(const Dimensions& z, std::span<const TensorType> inputs,
                             const QueryBlocks& blocks, WorkspaceParts& parts)
    : z_(z), dtype_(inputs[kValue].dtype), blocks_(blocks) {
  for (int i = 0; i < kSharedInputs; ++i) present_[i] = inputs[i].present();
  for (const Input i : {kQuery, kKey, kValue, kU, kA, kB}) {
    if (has(i)) layouts_[i] = HeadLayout(inputs[i], z_.heads);
  }
  // In attention_grad this input number means another operand.
  present_[kQueryStart] = inputs.size() == kInputCount && inputs[kQueryStart].present();
  by_position_ = present_[kKeyPositions];
  extent_ = z_.keys;
  if (by_position_) {
    constexpr int64_t kNone = int64_t{1} << 62;
    extent_ = std::min({has(kTable) ? z_.table_keys : kNone, has(kU) ? z_.position_extent : kNone,
                        has(kA) ? z_.a_size * z_.b_size : kNone});
    if (extent_ == kNone) extent_ = 0;
  }
  if (blocks_.AreRuns()) runs_ = parts.thread.Place(blocks_.most_runs() * sizeof(RowRun));
  row_scratch_ = parts.thread.PlaceFloats(RowScratchFloats(extent_, z_.a_size, z_.b_size));
  if (has(kU) && by_position_) {
    position_scores_ = parts.thread.PlaceFloats(blocks_.MostRows() * extent_);
  }
}

void ScoreProducts::BindProducts(std::span<const TensorType> inputs, WorkspaceParts& parts) {
  const int64_t most_rows = blocks_.MostRows();
  const size_t element = SizeOf(dtype_);
  if (has(kQuery)) {
    query_ = parts.thread.Place(most_rows * z_.head_size * element);
    key_ = parts.thread.Place(blocks_.GatheredKeys() * z_.head_size * element);
  }
  if (has(kU)) {
    u_ = parts.thread.Place(most_rows * z_.features * element);
    if (dtype_ == DType::kBF16) {
      rounded_positions_ = parts.call.Place(inputs[kPositions].shape.size() * element);
    }
  }
  for (const QueryBlock& shape : blocks_.Shapes()) {
    if (has(kQuery)) {
      dot_.push_back(parts.Bind({.m = shape.rows,
                                 .n = shape.keys,
                                 .k = z_.head_size,
                                 .transpose_b = true,
                                 .ab = dtype_}));
    }
    if (has(kU)) {
      feature_.push_back(parts.Bind({.m = shape.rows,
                                     .n = by_position_ ? extent_ : shape.keys,
                                     .k = z_.features,
                                     .b_stride = z_.position_extent,
                                     .ab = dtype_,
                                     .accumulate = !by_position_ && has(kQuery)}));
    }
  }
}

void ScoreProducts::RoundPositions(const Inputs& inputs, const Workspace& workspace) const {
  if (!has(kU) || dtype_ != DType::kBF16) return;
  const int64_t count = (z_.positions_per_head ? z_.heads : 1) * z_.features * z_.position_extent;
  RoundToBFloat16(static_cast<const float*>(inputs[kPositions]),
                  workspace.call + rounded_positions_, count);
}

const std::byte* ScoreProducts::positions(const WorkUnit& unit) const {
  const int64_t offset = z_.positions_per_head ? unit.h * z_.features * z_.position_extent : 0;
  const auto* base = dtype_ == DType::kBF16
                         ? unit.workspace.call + rounded_positions_
                         : static_cast<const std::byte*>(unit.arguments.inputs[kPositions]);
  return base + offset * SizeOf(dtype_);
}

std::span<const RowRun> ScoreProducts::RunsOf(const WorkUnit& unit, const QueryBlock& block) const {
  if (!blocks_.AreRuns()) return {};
  auto* scratch = reinterpret_cast<RowRun*>(unit.workspace.thread + runs_);
  return blocks_.RunsOf(unit.arguments.inputs, unit.h, block, scratch);
}

void ScoreProducts::Gather(const WorkUnit& unit, Input input, std::span<const RowRun> runs,
                           std::byte* to) const {
  const RowRun all{0, z_.keys};
  for (const RowRun& run : runs.empty() ? std::span(&all, 1) : runs) {
    const HeadRows rows = RowsOf(unit, input, run);
    const int64_t bytes = rows.count * rows.width * static_cast<int64_t>(SizeOf(dtype_));
    if (run.first < 0) {
      std::fill_n(to, bytes, std::byte{0});
    } else {
      GatherRows(rows, to, rows.width);
    }
    to += bytes;
  }
}

void ScoreProducts::GatherKeys(const WorkUnit& unit, std::span<const RowRun> runs,
                               std::byte* values) const {
  if (has(kQuery)) Gather(unit, kKey, runs, key(unit.workspace));
  Gather(unit, kValue, runs, values);
}

void ScoreProducts::Fill(const WorkUnit& unit, const QueryBlock& block, Tile& tile) const {
  const Workspace& w = unit.workspace;
  if (has(kQuery)) {
    GatherRows(RowsOf(unit, kQuery, block.queries()), query(w), z_.head_size);
    dot_[block.shape].Run(query(w), key(w), tile.scores, w.products);
  }
  if (has(kU)) {
    GatherRows(RowsOf(unit, kU, block.queries()), u(w), z_.features);
    feature_[block.shape].Run(u(w), positions(unit),
                              by_position_ ? tile.position_scores : tile.scores, w.products);
  }
  if (!has(kQuery) && (!has(kU) || by_position_)) {
    std::fill_n(tile.scores, block.rows * tile.stride, 0.0f);
  }
}

void ScoreProducts::FillFew(const WorkUnit& unit, const QueryBlock& block, Tile& tile) const {
  if (has(kQuery)) {
    DotRows(RowsOf(unit, kQuery, block.queries()), RowsOf(unit, kKey, {0, tile.keys}), tile);
  } else {
    std::fill_n(tile.scores, block.rows * tile.stride, 0.0f);
  }
  if (!has(kU)) return;
  if (by_position_) std::fill_n(tile.position_scores, block.rows * extent_, 0.0f);
  const float* p = static_cast<const float*>(unit.arguments.inputs[kPositions]) +
                   (z_.positions_per_head ? unit.h * z_.features * z_.position_extent : 0);
  AddFeatureRows(RowsOf(unit, kU, block.queries()), p, z_.position_extent,
                 by_position_ ? tile.position_scores : tile.scores,
                 by_position_ ? extent_ : tile.stride, by_position_ ? extent_ : tile.keys);
}

RowTerms ScoreProducts::Terms(const WorkUnit& unit, bool masked) const {
  const Inputs& inputs = unit.arguments.inputs;
  const int64_t b = unit.b, h = unit.h;
  RowTerms terms{.extent = extent_,
                 .start = 0,
                 .pattern = z_.pattern,
                 .block = z_.block,
                 .blocks_read = z_.blocks_read};
  if (has(kTable)) {
    terms.table = static_cast<const float*>(inputs[kTable]) +
                  (z_.table_heads == 1 ? 0 : h * z_.table_queries * z_.table_keys);
    terms.table_stride = z_.table_queries == 1 ? 0 : z_.table_keys;
  }
  if (has(kBias)) {
    terms.bias =
        static_cast<const float*>(inputs[kBias]) + h * (z_.queries + z_.keys - 1) + z_.queries - 1;
  }
  if (has(kA)) {
    terms.a = RowsOf(unit, kA, {0, z_.queries});
    terms.b = RowsOf(unit, kB, {0, z_.queries});
  }
  if (masked) {
    terms.query_segments = static_cast<const int32_t*>(inputs[kQuerySegments]) + b * z_.queries;
    terms.key_segments = static_cast<const int32_t*>(inputs[kKeySegments]) + b * z_.keys;
  }
  if (by_position_) {
    terms.query_positions = static_cast<const int32_t*>(inputs[kQueryPositions]) + b * z_.queries;
    terms.key_positions = static_cast<const int32_t*>(inputs[kKeyPositions]) + b * z_.keys;
  }
  if (has(kPrefixEnds)) {
    terms.prefix_ends = static_cast<const int32_t*>(inputs[kPrefixEnds]) + b * z_.queries;
  }
  if (has(kKeyBlocks)) {
    terms.key_blocks = static_cast<const int32_t*>(inputs[kKeyBlocks]) +
                       (z_.block_heads == 1 ? 0 : h * z_.QueryBlocks() * z_.blocks_read);
  }
  if (has(kQueryStart)) terms.start = *static_cast<const int32_t*>(inputs[kQueryStart]);
  return terms;
}

Tile ScoreProducts::TileOf(const QueryBlock& block, std::span<const RowRun> runs, float* scores,
                           const Workspace& w) const {
  return {.first = block.first,
          .rows = block.rows,
          .keys = block.keys,
          .step = block.step,
          .runs = runs,
          .stride = block.keys,
          .scores = scores,
          .position_scores = has(kU) && by_position_ ? position_scores(w) : nullptr,
          .row_scratch = reinterpret_cast<float*>(w.thread + row_scratch_)};
}

int64_t FindWholeExamples(const Dimensions& z, const Inputs& inputs, uint8_t* whole,
                          int64_t* examples) {
  const auto* queries = static_cast<const int32_t*>(inputs[kQuerySegments]);
  const auto* keys = static_cast<const int32_t*>(inputs[kKeySegments]);
  int64_t count = 0;
  for (int64_t b = 0; b < z.batch; ++b) {
    whole[b] = 1;
    if (queries) {
      const int32_t segment = queries[b * z.queries];
      const auto same = [&](int32_t other) { return other == segment; };
      whole[b] = segment != 0 &&
                 std::all_of(queries + b * z.queries, queries + (b + 1) * z.queries, same) &&
                 std::all_of(keys + b * z.keys, keys + (b + 1) * z.keys, same);
    }
    if (whole[b]) examples[count++] = b;
  }
  return count;
}

}  // namespace syntra::attention
