// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/attention/blocks.h"

#include <algorithm>

#include "base/divide.h"
#include "core/buffer.h"

namespace syntra::attention {
namespace {

constexpr int64_t kScore = sizeof(float);

// Whether the scores are sums of terms that are read by rows of queries and keys alone, as runs of
// keys can be: no tables, factors or positions.
bool HasOnlyTermsByRow(std::span<const TensorType> inputs) {
  return std::ranges::none_of(std::initializer_list<int>{kU, kA, kTable, kKeyPositions},
                              [&](int i) { return inputs[i].present(); });
}

}  // namespace

QueryBlocks::QueryBlocks(const Dimensions& z, std::span<const TensorType> inputs,
                         int64_t tile_bytes)
    : z_(z) {
  const bool from_start = inputs.size() == kInputCount && inputs[kQueryStart].present();
  // Other calls, and steps of decoding, compute all scores and hide those that do not count.
  if (!z_.IsSparse() || from_start || !HasOnlyTermsByRow(inputs)) {
    SplitEvenly(from_start || inputs[kPrefixEnds].present(), tile_bytes);
  } else if (z_.pattern.is_window()) {
    SplitWindows(tile_bytes);
  } else {
    SplitBlocks();
  }
}

void QueryBlocks::SplitBlocks() {
  runs_ = 2 * z_.blocks_read;
  for (int64_t first = 0; first < z_.queries; first += z_.block) {
    Add({first, std::min(z_.block, z_.queries - first), z_.blocks_read * z_.block, 0});
  }
}

void QueryBlocks::SplitEvenly(bool sees_all, int64_t tile_bytes) {
  const bool prefixes = z_.pattern.causal && !sees_all;
  // Causal blocks are small so that little is computed above the diagonal.
  const int64_t most = z_.pattern.causal ? 64 : 256;
  const int64_t rows = std::clamp<int64_t>(tile_bytes / kScore / z_.keys / 16 * 16, 16, most);
  for (int64_t first = 0; first < z_.queries; first += rows) {
    const int64_t count = std::min(rows, z_.queries - first);
    Add({first, count, prefixes ? std::min(z_.keys, first + count) : z_.keys, 0});
  }
}

// Blocks as long as the window: each computes twice as many scores as count. Queries a multiple of
// the dilation apart read the same keys, and so are together.
void QueryBlocks::SplitWindows(int64_t tile_bytes) {
  const Pattern& pattern = z_.pattern;
  const int64_t globals = std::min(pattern.globals, z_.queries), step = pattern.dilation;
  const auto add = [&](int64_t first, int64_t end, int64_t rows, int64_t step) {
    for (; first < end; first += rows * step) {
      QueryBlock block{first, std::min(rows, DivideUp(end - first, step)), 0, 0, step};
      block.runs = WindowOf(block);
      runs_ = std::max<int64_t>(runs_, std::ssize(block.runs));
      for (const RowRun& run : block.runs) block.keys += run.count;
      Add(std::move(block));
    }
  };
  add(0, globals, std::clamp<int64_t>(tile_bytes / kScore / z_.keys, 1, 128), 1);
  const int64_t rows = std::clamp<int64_t>(AlignUp(pattern.window, 16), 32, 128);
  for (int64_t first = globals; first < std::min(globals + step, z_.queries); ++first) {
    add(first, z_.queries, rows, step);
  }
}

std::vector<RowRun> QueryBlocks::WindowOf(const QueryBlock& block) const {
  const Pattern& pattern = z_.pattern;
  const int64_t last = block.first + (block.rows - 1) * block.step;
  const int64_t end = pattern.causal ? std::min(z_.keys, last + 1) : z_.keys;
  if (block.first < pattern.globals) return {{0, end}};
  const int64_t globals = std::min(pattern.globals, end), step = pattern.dilation;
  const int64_t before = (pattern.window - 1) * step;
  std::vector<RowRun> runs;
  if (globals > 0) runs.push_back({0, globals});
  const int64_t least = std::max(globals, block.first - before);
  const int64_t first = least + (block.first - least) % step;
  const int64_t behind = std::min(end, last + before + 1);
  if (first < behind) runs.push_back({first, DivideUp(behind - first, step), step});
  if (runs.empty()) runs.push_back({-1, 1});  // products need a column
  return runs;
}

void QueryBlocks::Add(QueryBlock block) {
  const auto same = std::ranges::find_if(all_, [&](const QueryBlock& other) {
    return other.rows == block.rows && other.keys == block.keys;
  });
  block.shape = same != all_.end() ? same->shape : shapes_++;
  all_.push_back(std::move(block));
}

std::vector<QueryBlock> QueryBlocks::Shapes() const {
  std::vector<QueryBlock> shapes;
  for (const QueryBlock& block : all_) {
    if (block.shape == static_cast<int>(shapes.size())) shapes.push_back(block);
  }
  return shapes;
}

int64_t QueryBlocks::MostRows() const { return std::ranges::max(all_, {}, &QueryBlock::rows).rows; }
int64_t QueryBlocks::GatheredKeys() const {
  return AreRuns() ? std::ranges::max(all_, {}, &QueryBlock::keys).keys : z_.keys;
}
int64_t QueryBlocks::LargestTile() const {
  int64_t most = 0;
  for (const QueryBlock& block : all_) most = std::max(most, block.rows * block.keys);
  return most;
}

std::span<const RowRun> QueryBlocks::RunsOf(const Inputs& inputs, int64_t h,
                                            const QueryBlock& block, RowRun* scratch) const {
  if (z_.block == 0) return block.runs;
  const int64_t head = z_.block_heads == 1 ? 0 : h;
  const auto* read = static_cast<const int32_t*>(inputs[kKeyBlocks]) +
                     (head * z_.QueryBlocks() + block.first / z_.block) * z_.blocks_read;
  RowRun* end = scratch;
  for (int64_t i = 0; i < z_.blocks_read; ++i) {
    const int64_t first = std::max(read[i], 0) * z_.block;
    const int64_t count = read[i] < 0 ? 0 : std::clamp<int64_t>(z_.keys - first, 0, z_.block);
    if (count > 0) *end++ = {first, count};
    if (count < z_.block) *end++ = {-1, z_.block - count};
  }
  return {scratch, end};
}

Columns ColumnsOf(const Pattern& pattern, int64_t query, const RowRun& run) {
  Columns columns{0, run.first < 0 ? 0 : run.count};
  // The column up to which, and that from which, rows are at most `row` and at least `row`.
  const auto through = [&](int64_t row) {
    return row < run.first ? 0 : std::min(columns.end, (row - run.first) / run.step + 1);
  };
  const auto from = [&](int64_t row) {
    return row <= run.first ? 0 : std::min(columns.end, DivideUp(row - run.first, run.step));
  };
  if (pattern.causal) columns.end = through(query);
  const int64_t last = run.first + (run.count - 1) * run.step;
  if (!pattern.is_window() || query < pattern.globals || last < pattern.globals) return columns;
  const int64_t before = (pattern.window - 1) * pattern.dilation;
  columns.end = through(query + before);
  columns.begin = from(query - before);
  return columns;
}

}  // namespace syntra::attention
