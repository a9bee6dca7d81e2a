// Greedy decoding, one position at a time: each step reads cached keys and values of the positions
// before it, so a step costs the same at any length of the prefix but for the attention itself.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "model/encoder_decoder.h"
#include "program/executable.h"

namespace syntra {

struct DecodeShape {
  int64_t rows = 0;
  int64_t input_length = 0;
  int64_t max_length = 0;  // of an output, EOS included
};

class GreedyDecoder {
 public:
  // `values` is the parameter arena on the backend, which must outlive this. Throws Error(kConfig)
  // if a mixer cannot decode incrementally or its tables are shorter than the shape.
  GreedyDecoder(const EncoderDecoder& model, ParameterStore& parameters, void* values,
                DType activations, const DecodeShape& shape, Backend& backend);

  // encoder_ids, encoder_segments: [rows, input_length]. One output per row, cut before `end_id`;
  // the most probable token at each step, the lowest id among equals.
  std::vector<std::vector<int32_t>> Decode(std::span<const int32_t> encoder_ids,
                                           std::span<const int32_t> encoder_segments,
                                           int32_t end_id);

 private:
  DecodeShape shape_;
  Buffer cache_;
  std::unique_ptr<Executable> encode_, step_;
};

}  // namespace syntra
