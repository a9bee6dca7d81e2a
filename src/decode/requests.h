// SPDX-License-Identifier: Apache-2.0
// Requests to a model, and how many requests become batches of similar length.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <span>
#include <vector>

#include "data/tokenizer.h"

namespace syntra {

struct DecodeRequest {
  // With its EOS if it has one; at most the model's input length.
  std::vector<int32_t> ids;
  // Ids of sentinels: the output ends with the last of their spans. Empty: only at EOS.
  std::set<int32_t> sentinels;
  // Returns true once more tokens cannot change the result: decoding then stops. Empty: they
  // always can.
  std::function<bool(std::span<const int32_t> ids)> is_settled = {};
};

// Whether the output of `request` that begins with `prefix` ends before `id`: at EOS, after the
// last span, or because it is settled.
bool EndsBefore(const DecodeRequest& request, const Tokenizer& tokenizer,
                std::span<const int32_t> prefix, int32_t id);

// The size of a request.
struct RequestSize {
  int64_t rows = 1;    // of the decoder
  int64_t input = 0;   // tokens
  int64_t output = 0;  // tokens, as far as they are known
};

// The requests of a batch, and the sizes of the programs that take it: `inputs` is at least the
// number of requests, `largest` at least the size of each.
struct RequestBatch {
  std::vector<size_t> requests;
  int64_t inputs = 0;
  RequestSize largest;
};

// Puts each request into a batch; requests of similar sizes share one. The batches are divided so
// that padding and the number of batches cost the least; the largest come first. Sizes are rounded
// up, so that few programs are made, but not beyond the longest input and output: inputs as in
// training (PaddedLength), outputs to powers of two. With `equal_inputs` only inputs of the same
// length share a batch.
std::vector<RequestBatch> BatchesBySize(std::span<const RequestSize> sizes, int64_t input_length,
                                        int64_t output_length, bool equal_inputs = false);

// The sizes of the programs for a batch of `requests` requests of this size or, if that is less, of
// as many as share a batch.
RequestBatch FullBatch(int64_t requests, const RequestSize& size, int64_t output_length);

// Called whenever this rank is done with a batch, with the number of its requests.
using OnBatch = std::function<void(size_t requests)>;

// The encoder's side of a batch: ids and segments [inputs, largest.input], row-major. The last
// request fills the rows after.
struct EncoderRows {
  std::vector<int32_t> ids, segments;
};
EncoderRows RowsOf(const RequestBatch& batch, std::span<const std::span<const int32_t>> inputs);

}  // namespace syntra
