// SPDX-License-Identifier: Apache-2.0
// Many inputs through the greedy decoder, in batches of inputs of like length.
#pragma once

#include <memory>
#include <set>
#include <span>
#include <vector>

#include "data/tokenizer.h"
#include "train/replica.h"

namespace syntra {

struct DecodeRequest {
  std::vector<int32_t> ids;  // EOS included; at most the model's input length
  // Ids of sentinels: the output ends with the last of their spans. Empty: only at EOS.
  std::set<int32_t> sentinels;
};

// Follows the outputs of a batch and says where they end: a GreedyDecoder::Ends. Rows behind those
// of the requests end at once.
class SpanEnds {
 public:
  // The tokenizer must outlive this.
  SpanEnds(std::span<const DecodeRequest* const> requests, const Tokenizer& tokenizer);

  bool operator()(int64_t row, int32_t id);

 private:
  struct Row {
    bool by_sentinels;
    std::set<int32_t> missing;  // sentinels that were not seen yet
  };
  const Tokenizer& tokenizer_;
  std::vector<Row> rows_;
};

class BatchDecoder {
 public:
  // Lengths in tokens, EOS included. Replica and tokenizer must outlive this. Throws Error(kConfig)
  // if the model cannot decode.
  BatchDecoder(Replica& replica, const Tokenizer& tokenizer, int64_t input_length,
               int64_t target_length);

  int64_t input_length() const { return input_length_; }

  // One output for each request, in their order, without EOS. An output that finds no end is as
  // long as the longest target.
  std::vector<std::vector<int32_t>> Decode(std::span<const DecodeRequest> requests);

 private:
  GreedyDecoder& DecoderFor(int64_t rows, int64_t input_length);

  Replica& replica_;
  const Tokenizer& tokenizer_;
  int64_t input_length_, target_length_;
  std::unique_ptr<GreedyDecoder> decoder_;  // of the shape that was used last
};

}  // namespace syntra
