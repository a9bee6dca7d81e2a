// SPDX-License-Identifier: Apache-2.0
// The rows of an epoch: which examples each holds, and in which order rows are taken.
//
// Full examples fill a row each. The others are taken in a random order: each goes into the first
// of the rows left open that has room for its inputs and targets, else it opens a new row. Then all
// rows are shuffled. A row's content is a function of (examples, packing, seed, epoch), so it can
// be asked for by its number alone.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "data/batch.h"
#include "data/example_source.h"
#include "data/permutation.h"
#include "data/row_layout.h"

namespace syntra {

// How examples are put into rows.
struct RowPacking {
  ExampleLengths row;  // slots, by the layout
  bool pack = true;    // else an example a row
  // Rows that wait for an example that fits. 1: each example goes after the one before it or opens
  // a row, as in T5's code.
  int64_t open_rows = 1;
  // Without packing: rows that are computed together are ordered by length, and only as long as the
  // longest of them, rounded up (PaddedLength).
  bool trim = false;
  const RowLayout* layout = &SeparateRows();

  // Packing of the segments of a corpus: most fill a row, and the others vary little in length.
  static RowPacking OfCorpus(const DataConfig& config, const RowLayout& layout);
  // Packing of examples of any length, trimmed. With one open row, examples of a quarter row and
  // more would leave a quarter of the slots empty; with many open rows, a twelfth.
  static RowPacking OfExamples(const DataConfig& config, const RowLayout& layout);

  // Whether the lengths of rows depend on their examples.
  bool Trims() const { return trim && !pack; }
  // Slots of rows that take `longest` at most.
  ExampleLengths BatchLengths(const ExampleLengths& longest) const;
};

// `length` rounded up, at most to `most`: to a multiple of 8 below 64, else to one of four lengths
// in each octave (64, 80, 96, 112, 128, 160, ...). So few programs are needed, and from 32 on less
// than a fifth of the result is padding.
int64_t PaddedLength(int64_t length, int64_t most);

class PackedEpoch {
 public:
  PackedEpoch(std::shared_ptr<const ExampleEpoch> examples, const RowPacking& packing,
              uint64_t seed, int64_t epoch);

  // In rows.
  int64_t size() const { return row_order_.size(); }
  const ExampleEpoch& examples() const { return *examples_; }
  // Slots of the row's examples together.
  ExampleLengths LengthsOf(int64_t row) const;
  // Begins to read what Write needs, as ExampleEpoch::Prefetch.
  void Prefetch(int64_t row) const;
  void Write(int64_t row, RowWriter* writer) const;
  // The examples of a row, in the order in which they stand in it.
  std::vector<int64_t> ExamplesOf(int64_t row) const;

 private:
  template <typename Visit>
  void VisitExamples(int64_t row, const Visit& visit) const;
  // Returns how many rows the short examples fill.
  int64_t PlanShortRows(const RowPacking& packing);

  std::shared_ptr<const ExampleEpoch> examples_;
  const RowLayout& layout_;
  KeyedPermutation short_order_;
  std::vector<int64_t> packed_;  // places in short_order_, row by row; empty: all as they are
  // Where each packed row begins in packed_, then the end; empty: an example a row.
  std::vector<int64_t> packed_begin_;
  KeyedPermutation row_order_;
};

}  // namespace syntra
