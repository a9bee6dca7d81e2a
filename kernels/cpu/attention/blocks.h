// SPDX-License-Identifier: Apache-2.0
// How the attention kernels split the queries into blocks, and which keys each block reads. Where
// every query may read nearly every key, that is a prefix of the keys. With a window or with key
// blocks it is a few runs of keys, which are gathered to the columns of the block's tile.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/attention_call.h"
#include "kernels/bound_kernel.h"

namespace syntra::attention {

using Inputs = std::span<void* const>;

// Rows first, first + step and so on. first < 0: columns of a tile that stand for no row.
struct RowRun {
  int64_t first, count, step = 1;
};

// A block of queries.
struct QueryBlock {
  int64_t first, rows, keys;
  int shape;                 // blocks with equal numbers of rows and keys have the same shape
  int64_t step = 1;          // rows from one query to the next
  std::vector<RowRun> runs;  // of a window: the keys, `keys` in all; else empty

  RowRun queries() const { return {first, rows, step}; }
};

class QueryBlocks {
 public:
  // The f32 tile of a block's scores takes at most `tile_bytes` (so that it fits the second-level
  // cache). `inputs`: those of attention or of attention_grad.
  QueryBlocks(const Dimensions& z, std::span<const TensorType> inputs, int64_t tile_bytes);

  const std::vector<QueryBlock>& all() const { return all_; }
  // The first block of each shape.
  std::vector<QueryBlock> Shapes() const;
  // Whether the keys of a block are runs of keys. If not, they are the first of all keys.
  bool AreRuns() const { return runs_ > 0; }
  int64_t MostRows() const;
  // Rows of keys that are gathered at a time: those of a block's runs, else all.
  int64_t GatheredKeys() const;
  int64_t LargestTile() const;  // scores

  // The keys that a block of head h reads, if they are runs. `scratch` has most_runs() elements.
  std::span<const RowRun> RunsOf(const Inputs& inputs, int64_t h, const QueryBlock& block,
                                 RowRun* scratch) const;
  int64_t most_runs() const { return runs_; }

 private:
  // `sees_all`: only the data decide which keys a query may read.
  void SplitEvenly(bool sees_all, int64_t tile_bytes);
  void SplitWindows(int64_t tile_bytes);
  void SplitBlocks();
  void Add(QueryBlock block);
  // The runs of keys that the queries of a block read.
  std::vector<RowRun> WindowOf(const QueryBlock& block) const;

  Dimensions z_;
  int64_t runs_ = 0;
  int shapes_ = 0;
  std::vector<QueryBlock> all_;
};

// Which columns of a run the query in row `query` may read by the pattern: [begin, end).
struct Columns {
  int64_t begin, end;
};
Columns ColumnsOf(const Pattern& pattern, int64_t query, const RowRun& run);

}  // namespace syntra::attention
