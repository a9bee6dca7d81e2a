// SPDX-License-Identifier: Apache-2.0
// Decodes many inputs with a decoding strategy, in batches of inputs of similar length.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "core/transient_buffer.h"
#include "decode/requests.h"
#include "decode/strategy.h"
#include "dist/communicator.h"

namespace syntra {

struct DecodeSettings {
  DecodingConfig decoding;
  // Longest input and output in tokens, EOS included. decoding.max_length, if it is set, replaces
  // output_length.
  int64_t input_length = 0, output_length = 0;
  // Longest input and output together, where they share a row; else 0.
  int64_t together = 0;
  // Also computes log-probabilities in greedy decoding, which takes a little longer.
  bool log_probabilities = false;
};

// The settings for the model of a configuration.
DecodeSettings DecodeSettingsOf(const Config& config);

// The most memory that a BatchDecoder takes for `requests` requests in all, of whatever sizes.
// Throws Error(kConfig) if the model cannot decode.
DecodingMemory MemoryOfDecoding(const TrainedModel& model, const DecodeSettings& settings,
                                int64_t requests);

class BatchDecoder {
 public:
  // Model and tokenizer must outlive this. Throws Error(kConfig) if the model cannot decode.
  BatchDecoder(const TrainedModel& model, const Tokenizer& tokenizer,
               const DecodeSettings& settings);

  const DecodeSettings& settings() const { return settings_; }

  // The outputs of each request, in the order of the requests. An output that does not end has the
  // greatest length. An output depends on the other requests only by rounding.
  std::vector<Hypotheses> Decode(std::span<const DecodeRequest> requests);
  // All ranks give the same requests, share the work, and get all outputs.
  std::vector<Hypotheses> Decode(std::span<const DecodeRequest> requests, Communicator& ranks,
                                 const OnBatch& on_batch = {});

 private:
  DecodeSession& SessionFor(const RequestBatch& batch);
  std::vector<Hypotheses> DecodeOne(std::span<const DecodeRequest> requests,
                                    const RequestBatch& batch);

  // Memory for the sessions' programs, where the model brings none to share.
  std::unique_ptr<TransientBuffer> own_transients_;
  TrainedModel model_;
  const Tokenizer& tokenizer_;
  DecodeSettings settings_;
  std::unique_ptr<Strategy> strategy_;
  TransientBuffer caches_;                                // of the sessions
  std::vector<std::unique_ptr<DecodeSession>> sessions_;  // the one used last is the last
};

}  // namespace syntra
