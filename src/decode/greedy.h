// SPDX-License-Identifier: Apache-2.0
// Greedy decoding, one position at a time: each step reads cached keys and values of the positions
// before it, so a step costs the same at any length of the prefix but for the attention itself.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "model/encoder_decoder.h"
#include "program/executable.h"

namespace syntra {

struct DecodeShape {
  int64_t rows = 0;
  int64_t input_length = 0;
  int64_t max_length = 0;  // of an output, EOS included
  friend bool operator==(const DecodeShape&, const DecodeShape&) = default;
};

// Throws Error(kConfig) if the decoder's mixer cannot decode step by step: one whose tables are
// indexed by SEGMENT_POSITION.
void CheckDecodes(const EncoderDecoder& model);

class GreedyDecoder {
 public:
  // `values` is the parameter arena on the backend, which must outlive this. Throws Error(kConfig)
  // as CheckDecodes, or if a mixer's tables are shorter than the shape.
  GreedyDecoder(const EncoderDecoder& model, ParameterStore& parameters, void* values,
                DType activations, const DecodeShape& shape, Backend& backend);

  // Whether the output of `row` ends before `id`, which the model gives next. Called once for each
  // token of a row, in order, until it says yes.
  using Ends = std::function<bool(int64_t row, int32_t id)>;

  // encoder_ids, encoder_segments: [rows, input_length]. One output per row; the most probable
  // token at each step, the lowest id among equals. Stops when every row has ended.
  std::vector<std::vector<int32_t>> Decode(std::span<const int32_t> encoder_ids,
                                           std::span<const int32_t> encoder_segments,
                                           const Ends& ends);
  const DecodeShape& shape() const { return shape_; }

 private:
  DecodeShape shape_;
  Buffer cache_;
  std::unique_ptr<Executable> encode_, step_;
};

}  // namespace syntra
