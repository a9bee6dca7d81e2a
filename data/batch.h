// SPDX-License-Identifier: Apache-2.0
// Batches of examples, as named tensors of ids. data/row_layout.h says where examples lie in them.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/example.h"

namespace syntra {

// The target of a slot whose token is read but need not be predicted.
inline constexpr int32_t kIgnoredTarget = -1;

// B rows of S input and T target slots. Slots beyond a row's examples are 0 everywhere.
class Batch {
 public:
  Batch() = default;
  // With W targets for each input, the decoder's tensors have B * W rows, those of an input side by
  // side.
  Batch(int64_t rows, int64_t input_length, int64_t target_length, int64_t targets_per_input = 1);

  // i32, row-major:
  //   encoder_ids, encoder_segments, encoder_positions [B, S]; absent where S is 0;
  //   decoder_ids, decoder_segments, decoder_positions, targets [B * W, T];
  //   decoder_prefix_ends [B * W, T]; only where S is 0.
  // Segment 0 is padding, packed examples count from 1; positions restart in each segment.
  // decoder_prefix_ends has, in the slots that read an example's inputs, the slot after these; else
  // 0.
  const std::map<std::string, std::vector<int32_t>, std::less<>>& tensors() const {
    return tensors_;
  }
  // The tensor of this name, which must exist.
  std::vector<int32_t>& operator[](std::string_view name);
  const std::vector<int32_t>& operator[](std::string_view name) const;
  std::span<const int32_t> Row(std::string_view name, int64_t row) const;
  // S or T.
  int64_t LengthOf(std::string_view name) const;

  int64_t rows = 0, input_length = 0, target_length = 0, targets_per_input = 1;
  int64_t first_example = 0;  // global index of row 0: rows' random keys derive from it
  int64_t target_tokens = 0;  // targets > 0

 private:
  std::map<std::string, std::vector<int32_t>, std::less<>> tensors_;
};

// A sum over the target ids and their places, modulo 2^64. Equal sums of two runs say that they
// were given the same data; the sum over a batch's parts is the sum of the batch, where their rows
// have its length.
uint64_t LabelChecksum(const Batch& batch);

// Counts the batch's targets > 0 into target_tokens.
void CountTargetTokens(Batch* batch);

}  // namespace syntra
