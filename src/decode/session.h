// SPDX-License-Identifier: Apache-2.0
// Decoding one position at a time: inputs are read once, then each step appends a token to every
// prefix and computes what may come next. Keys and values of the positions before are cached, so a
// step costs the same at any length of the prefix, except for the attention itself.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "core/buffer.h"
#include "data/batch.h"
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
  void* rounded = nullptr;          // bf16 copies of the parameters (Arenas); null: none
  PackedWeights* packed = nullptr;  // Arenas

  // For programs that read the parameters, one after another.
  Arenas arenas() const {
    return {.parameters = values, .transients = transients, .rounded = rounded};
  }
};

// Gives a program the tensors of the batch that it reads.
void SetBatchInputs(Executable& program, const Batch& batch);

// The results of a step for each row: the most probable token, with the lowest id among equals, and
// possibly its log-probability; or the logits of all tokens. The token is -1 if the logits are not
// finite.
enum class NextTokens { kBest, kBestWithLogProbability, kLogits };

class CacheLayout;

// The logits of the rows of inputs that are not finished.
struct LogitRows {
  std::span<const float> all;
  int64_t vocabulary, rows_per_input;
  std::span<const int64_t> places;  // of each input among those of `all`

  std::span<const float> operator[](int64_t row) const {
    const int64_t place = places[row / rows_per_input] * rows_per_input + row % rows_per_input;
    return all.subspan(place * vocabulary, vocabulary);
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
  // `caches`: memory that sessions share, of which one decodes at a time; if it has grown, those
  // made before are of no use any more. Null: memory of its own. Throws Error(kConfig) as
  // CheckDecodes, or if a mixer's tables are shorter than the shape.
  DecodeSession(const TrainedModel& model, const DecodeShape& shape, NextTokens next,
                TransientBuffer* caches = nullptr);
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
  // From now on row r has the prefix of row parents[r], a row of the same input. A row that others
  // take the prefix of keeps its own.
  void TakePrefixes(std::span<const int32_t> parents);
  // Nothing more is asked of the input's rows: later steps may leave them out.
  void Finish(int64_t input);

  // The results of the last Append, of rows that are not finished; those of others mean nothing.
  // NextTokens decides which of them there are. The logits last until the next Append or, with
  // shared transients, until another program runs.
  std::vector<int32_t> best() const;             // [rows]
  std::vector<float> log_probabilities() const;  // [rows]; empty unless asked for
  LogitRows logits() const;

  // Bytes of the caches on the device.
  size_t cache_bytes() const;

 private:
  // Reads inputs that share a row with their outputs.
  void ReadInRow(std::span<const int32_t> ids, std::span<const int32_t> segments);
  void ReadBySteps(std::span<const int32_t> ids, int64_t length);
  void Prefill(std::span<const int32_t> ids, int64_t length);
  std::unique_ptr<Executable> Bind(Program program, TransientBuffer* transients);
  void UseStep();
  // Moves inputs that are not finished to the front of the caches, and has steps compute only them.
  void LeaveOutFinished();
  // Runs a program that copies the states of rows.
  void CopyStates(Executable& copying, std::span<const int32_t> rows);
  // A named output of the step, by rows instead of places.
  template <typename T>
  std::vector<T> ByRow(const std::string& output) const;
  // Calls visit(row, its place in the caches) for every row that has one.
  void ForEachPlacedRow(const auto& visit) const {
    for (size_t place = 0; place < order_.size(); ++place) {
      for (int64_t k = 0; k < shape_.rows_per_input; ++k) {
        visit(order_[place] * shape_.rows_per_input + k,
              static_cast<int64_t>(place) * shape_.rows_per_input + k);
      }
    }
  }

  TrainedModel model_;
  Device& device_;
  DecodeShape shape_;
  InputReading reading_;
  NextTokens next_;
  int64_t length_ = 0, max_length_ = 0;
  int64_t input_positions_ = 0;  // of the decoder, before the prefix
  std::vector<int32_t> first_tokens_;
  TransientBuffer own_caches_;
  std::byte* caches_;
  std::unique_ptr<CacheLayout> layout_;
  std::vector<std::span<std::byte>> of_steps_;  // the states that steps write, in the cache
  std::vector<int32_t> segments_;               // of the inputs
  std::vector<bool> finished_;                  // of each input
  std::vector<int64_t> order_;   // the inputs that steps compute, by their places in the caches
  std::vector<int64_t> places_;  // the other way: of each input; -1 if it is left out
  std::unique_ptr<Executable> read_, take_prefixes_, move_inputs_;
  std::map<int64_t, std::unique_ptr<Executable>> steps_;  // by how many inputs they compute
  Executable* step_ = nullptr;
};

}  // namespace syntra
