// SPDX-License-Identifier: Apache-2.0
// Batches of examples and how segments of tokens are written into their rows.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/random.h"
#include "data/span_corruption.h"
#include "data/tokenizer.h"

namespace syntra {

class DataConfig;

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

// What decides examples besides the corpus.
struct ExampleSettings {
  double noise_density = 0.15, mean_span_length = 3;
  CorruptionLengths longest;  // of a full segment
  int64_t input_length = 0, target_length = 0;
  int32_t first_sentinel = 0, eos = 1;

  // Throws Error(kConfig) if full segments need more sentinels than there are, Error(kData) if the
  // tokenizer has no EOS.
  static ExampleSettings From(const DataConfig& config, const Tokenizer& tokenizer);
};

// Writes examples, one behind the other, into a row of a batch.
class RowWriter {
 public:
  RowWriter(const ExampleSettings& settings, int64_t row, Batch* batch);

  // The segment's tokens are to be written here before Append.
  std::span<int32_t> Tokens(int64_t count);
  // Corrupts them with the mask of `key` and puts them behind the row's other examples.
  void Append(std::span<const int32_t> tokens, RandomKey key);

 private:
  const ExampleSettings& settings_;
  Batch& batch_;
  SpanCorruption corruption_;
  std::vector<int32_t> tokens_, inputs_, targets_;
  int64_t row_;
  int64_t input_end_ = 0, target_end_ = 0;  // filled slots of the row
  int32_t segment_ = 0;
};

// Counts the batch's targets > 0 into target_tokens.
void CountTargetTokens(Batch* batch);

}  // namespace syntra
