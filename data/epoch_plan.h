// SPDX-License-Identifier: Apache-2.0
// The rows of one training epoch: which segments each holds, and in which order rows are taken.
//
// Full segments fill a row each. Shorter ones, the rests of the groups, are put together in a
// random order: each goes behind the one before it if inputs and targets still fit, else it opens a
// new row. Then all rows are shuffled. Everything is a function of (corpus, settings, seed, epoch),
// so a row can be asked for by its index alone.
#pragma once

#include <cstdint>
#include <vector>

#include "data/batch.h"
#include "data/permutation.h"
#include "data/segment_table.h"

namespace syntra {

class EpochPlan {
 public:
  EpochPlan(const TokenCorpus& corpus, const ExampleSettings& settings, bool pack, uint64_t seed,
            uint64_t epoch);

  int64_t row_count() const { return row_order_.size(); }
  const SegmentTable& segments() const { return segments_; }
  // Writes row `index` of the epoch.
  void WriteRow(int64_t index, RowWriter* writer) const;
  // The segments of row `index`, in the order in which they stand in it.
  std::vector<int64_t> SegmentsOf(int64_t index) const;

 private:
  template <typename Visit>
  void VisitSegments(int64_t index, const Visit& visit) const;

  uint64_t seed_, epoch_;
  SegmentTable segments_;
  KeyedPermutation short_order_;
  std::vector<int64_t>
      packed_begin_;  // first place in short_order_ of each packed row, then the end
  KeyedPermutation row_order_;
};

}  // namespace syntra
