// SPDX-License-Identifier: Apache-2.0
// Decoding one position at a time: inputs are read once, then each step appends a token to every
// prefix and computes what may come next. Keys and values of the positions before are cached, so a
// step costs the same at any length of the prefix, except for the attention itself.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/buffer.h"
#include "model/model.h"
#include "program/executable.h"

namespace syntra {

// A model and its parameters in a backend's memory; all must outlive what reads them.
struct TrainedModel {
  const Model& model;
  const ParameterStore& parameters;
  void* values;  // the parameter arena
  DType activations;
  Backend& backend;
  // Memory that is shared with training and other sessions; null: every program has memory of its
  // own.
  TransientBuffer* transients = nullptr;
  void* rounded = nullptr;  // bf16 copies of the parameters (Arenas); null: none
};

// The results of a step for each row: the most probable token, with the lowest id among equals, and
// possibly its log-probability; or the logits of all tokens. The token is -1 if the logits are not
// finite.
enum class NextTokens { kBest, kBestWithLogProbability, kLogits };

// The logits of all rows, one row after another.
struct LogitRows {
  std::span<const float> all;
  int64_t vocabulary;

  std::span<const float> operator[](int64_t row) const {
    return all.subspan(row * vocabulary, vocabulary);
  }
};

// Throws Error(kConfig) if a mixer of the decoder cannot decode step by step.
void CheckDecodes(const Model& model);

// The memory that decoding takes on a device.
struct DecodingMemory {
  size_t cache_bytes = 0;      // as long as a session is kept
  size_t transient_bytes = 0;  // of programs that run one after another
};
// The memory that a session would take; makes no session and reads no parameters. Throws as
// DecodeSession does.
DecodingMemory MemoryOfSession(const TrainedModel& model, const DecodeShape& shape,
                               NextTokens next);

class DecodeSession {
 public:
  // Throws Error(kConfig) as CheckDecodes, or if a mixer's tables are shorter than the shape.
  DecodeSession(const TrainedModel& model, const DecodeShape& shape, NextTokens next);
  // Waits for the work that is underway: it uses the session's memory.
  ~DecodeSession();
  DecodeSession(const DecodeSession&) = delete;
  DecodeSession& operator=(const DecodeSession&) = delete;

  const DecodeShape& shape() const { return shape_; }
  // Tokens that every prefix has, the one of first_tokens included.
  int64_t length() const { return length_; }
  // Tokens that an output of the inputs may have: shape().max_length, or fewer where their row
  // ends.
  int64_t max_length() const { return max_length_; }

  // Reads ids i32 [inputs, input_length]; segments are 1, and 0 where there is padding. Without an
  // encoder all inputs have the same length. The prefixes are then empty. Row r belongs to input r
  // / rows_per_input.
  void Start(std::span<const int32_t> ids, std::span<const int32_t> segments);
  // The token that the first Append of each row must append, as in training: 0, or the last token
  // of the input where the output follows it in the same row.
  const std::vector<int32_t>& first_tokens() const { return first_tokens_; }
  // Appends a token to each row's prefix and computes what follows. At most max_length() tokens.
  void Append(std::span<const int32_t> ids);
  // From now on row r has the prefix of row parents[r], a row of the same input.
  void Reorder(std::span<const int32_t> parents);

  // The results of the last Append, in host memory until the next one or, with shared transients,
  // until another program runs. NextTokens decides which of them there are.
  std::span<const int32_t> best() const;             // [rows]
  std::span<const float> log_probabilities() const;  // [rows]; empty unless asked for
  LogitRows logits() const;                          // of each row

  // Bytes of the caches on the device.
  size_t cache_bytes() const { return cache_.size(); }

 private:
  // Reads inputs that share a row with their outputs.
  void ReadInRow(std::span<const int32_t> ids, std::span<const int32_t> segments);
  void ReadBySteps(std::span<const int32_t> ids, int64_t length);
  void Prefill(std::span<const int32_t> ids, int64_t length);

  Device& device_;
  DecodeShape shape_;
  InputReading reading_;
  NextTokens next_;
  int64_t length_ = 0, max_length_ = 0;
  int64_t input_positions_ = 0;  // of the decoder, before the prefix
  std::vector<int32_t> first_tokens_;
  Buffer cache_;
  std::vector<std::span<std::byte>> running_;  // states that start from zeros, in the cache
  std::unique_ptr<Executable> read_, step_, reorder_;
};

}  // namespace syntra
