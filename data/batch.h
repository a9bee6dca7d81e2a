// SPDX-License-Identifier: Apache-2.0
// Batches of examples and how examples are written into their rows.
#pragma once

#include <cstdint>
#include <vector>

#include "data/example_source.h"

namespace syntra {

// B rows of S input and T target slots, row-major. Slots beyond a row's examples are 0 everywhere.
struct Batch {
  Batch() = default;
  Batch(int64_t rows, int64_t input_length, int64_t target_length);

  int64_t rows = 0, input_length = 0, target_length = 0;
  // [B, S]. Segment 0 is padding, packed examples count from 1; positions restart in each segment.
  std::vector<int32_t> encoder_ids, encoder_segments, encoder_positions;
  // [B, T]. decoder_ids are the targets moved right by one, with 0 at the start of each segment.
  std::vector<int32_t> decoder_ids, targets, decoder_segments, decoder_positions;
  int64_t first_example = 0;  // global index of row 0: rows' random keys derive from it
  int64_t target_tokens = 0;  // targets > 0
};

// A sum over the target ids and their places, modulo 2^64. Equal sums of two runs say that they
// were given the same data; the sum over a batch's parts is the sum of the batch.
uint64_t LabelChecksum(const Batch& batch);

// Writes examples, one behind the other, into a row of a batch.
class RowWriter {
 public:
  RowWriter(int64_t row, Batch* batch) : batch_(*batch), row_(row) {}

  void Append(const ExampleEpoch& epoch, int64_t example);

 private:
  Batch& batch_;
  int64_t row_;
  ExampleLengths filled_;
  int32_t segment_ = 0;
};

// Counts the batch's targets > 0 into target_tokens.
void CountTargetTokens(Batch* batch);

}  // namespace syntra
