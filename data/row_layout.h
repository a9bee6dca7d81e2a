// SPDX-License-Identifier: Apache-2.0
// How examples lie in the rows of a batch: which of its tensors hold their inputs and their
// targets. Each architecture of a model has one (src/model/architecture.h).
#pragma once

#include <functional>
#include <vector>

#include "data/batch.h"
#include "data/example_source.h"

namespace syntra {

class RowLayout {
 public:
  using WriteExample = std::function<void(const ExampleSlots&)>;

  virtual ~RowLayout() = default;

  // The slots that examples of these lengths take of a row: `inputs` slots of its encoder tensors,
  // `targets` slots of its decoder tensors. For the longest inputs and targets this gives the
  // lengths of a row. The function is linear.
  virtual ExampleLengths SlotsOf(const ExampleLengths& lengths) const = 0;

  // Writes an example into a row of the batch from slots `begin` on, where it has room. `write`
  // fills its ids.
  virtual void Write(const ExampleLengths& lengths, int32_t segment, int64_t row,
                     const ExampleLengths& begin, Batch* batch,
                     const WriteExample& write) const = 0;

  // The inputs of all examples of a row, one after the other.
  virtual std::vector<int32_t> InputsOf(const Batch& batch, int64_t row) const = 0;
};

// Inputs in encoder_ids, targets in targets; decoder_ids are the targets moved right by one, with 0
// at the start of each segment.
const RowLayout& SeparateRows();

// No encoder tensors. decoder_ids are inputs and targets, one after the other, moved right by one,
// with 0 at the start of each segment; `targets` is kIgnoredTarget where an input would be. The
// prefix of an example goes from its 0 to its last input, so to the slot of the first target.
const RowLayout& SharedRows();

// As SeparateRows, but every input has a target in its own slot, or kIgnoredTarget. A model reads
// none of the decoder's other tensors.
const RowLayout& RowsOfTokenPairs();

// As SeparateRows; every example has one target, its class, and a row of its own.
const RowLayout& RowsOfOneClass();

// Writes examples, one after the other, into a row of a batch.
class RowWriter {
 public:
  RowWriter(const RowLayout& layout, int64_t row, Batch* batch)
      : layout_(layout), batch_(*batch), row_(row) {}

  void Append(const ExampleLengths& lengths, const RowLayout::WriteExample& write);
  void Append(const ExampleEpoch& epoch, int64_t example);

 private:
  const RowLayout& layout_;
  Batch& batch_;
  int64_t row_;
  ExampleLengths filled_;
  int32_t segment_ = 0;
};

}  // namespace syntra
