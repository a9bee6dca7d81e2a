// SPDX-License-Identifier: Apache-2.0
// Decoding one position at a time: inputs are encoded once, then each step appends a token to every
// prefix and computes what may come next. Keys and values of the positions before are cached, so a
// step costs the same at any length of the prefix but for the attention itself.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/buffer.h"
#include "model/encoder_decoder.h"
#include "program/executable.h"

namespace syntra {

// A model and its parameters in a backend's memory; all must outlive what reads them.
struct TrainedModel {
  const EncoderDecoder& model;
  ParameterStore& parameters;
  void* values;  // the parameter arena
  DType activations;
  Backend& backend;
  // What training and other sessions use, too; null: every program has memory of its own.
  TransientBuffer* transients = nullptr;
};

struct DecodeShape {
  int64_t inputs = 0;          // encoded together
  int64_t rows_per_input = 1;  // prefixes of each: beams or samples
  int64_t input_length = 0;
  int64_t max_length = 0;  // of an output, EOS included

  int64_t rows() const { return inputs * rows_per_input; }
  friend bool operator==(const DecodeShape&, const DecodeShape&) = default;
};

// What a step computes for each row: the most probable token, the lowest id among equals, and
// perhaps its log-probability; or the logits of all tokens.
enum class NextTokens { kBest, kBestWithLogProbability, kLogits };

// One row after another.
struct LogitRows {
  std::span<const float> all;
  int64_t vocabulary;

  std::span<const float> operator[](int64_t row) const {
    return all.subspan(row * vocabulary, vocabulary);
  }
};

// Throws Error(kConfig) if a mixer of the decoder cannot decode step by step.
void CheckDecodes(const EncoderDecoder& model);

class DecodeSession {
 public:
  // Throws Error(kConfig) as CheckDecodes, or if a mixer's tables are shorter than the shape.
  DecodeSession(const TrainedModel& model, const DecodeShape& shape, NextTokens next);
  // Waits for the work that is underway: it uses the session's memory.
  ~DecodeSession();
  DecodeSession(const DecodeSession&) = delete;
  DecodeSession& operator=(const DecodeSession&) = delete;

  const DecodeShape& shape() const { return shape_; }
  // Tokens that every prefix has, the 0 at its start included.
  int64_t length() const { return length_; }

  // Encodes ids i32 [inputs, input_length]; segments are 1, and 0 where there is padding. The
  // prefixes are then empty. Row r belongs to input r / rows_per_input.
  void Start(std::span<const int32_t> ids, std::span<const int32_t> segments);
  // Appends a token to each row's prefix and computes what follows. The first token is 0, as in
  // training. At most max_length tokens.
  void Append(std::span<const int32_t> ids);
  // From now on row r has the prefix of row parents[r], a row of the same input.
  void Reorder(std::span<const int32_t> parents);

  // Of the last Append, in host memory until the next one or, with shared transients, until another
  // program runs; which of them depends on NextTokens.
  std::span<const int32_t> best() const;             // [rows]
  std::span<const float> log_probabilities() const;  // [rows]; empty unless asked for
  LogitRows logits() const;                          // of each row

  // Bytes of the caches on the device.
  size_t cache_bytes() const { return cache_.size(); }

 private:
  Device& device_;
  DecodeShape shape_;
  NextTokens next_;
  int64_t length_ = 0;
  Buffer cache_;
  std::vector<std::span<std::byte>> running_;  // states that start from zeros, in the cache
  std::unique_ptr<Executable> encode_, step_, reorder_;
};

}  // namespace syntra
