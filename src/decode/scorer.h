// SPDX-License-Identifier: Apache-2.0
// Log-probabilities of given targets: of one, or of the labels of a set, which share one encoder
// pass.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "decode/requests.h"
#include "decode/session.h"
#include "dist/communicator.h"

namespace syntra {

struct ScoreRequest {
  std::vector<int32_t> ids;                   // of the input, EOS included
  std::vector<std::vector<int32_t>> targets;  // one at least; EOS included
};

class Scorer {
 public:
  // Lengths in tokens, EOS included: of the longest input and target. The model must outlive this.
  Scorer(const TrainedModel& model, int64_t input_length, int64_t target_length)
      : model_(model), input_length_(input_length), target_length_(target_length) {}

  // The natural logarithm of each target's probability, in the order of requests and targets.
  std::vector<std::vector<double>> Score(std::span<const ScoreRequest> requests);
  // All ranks give the same requests, share the work, and get all results.
  std::vector<std::vector<double>> Score(std::span<const ScoreRequest> requests,
                                         Communicator& ranks, const OnBatch& on_batch = {});

 private:
  Executable& ProgramFor(const RequestBatch& batch);
  std::vector<std::vector<double>> ScoreOne(std::span<const ScoreRequest> requests,
                                            const RequestBatch& batch);

  TrainedModel model_;
  int64_t input_length_, target_length_;
  std::unique_ptr<Executable> program_;  // of the sizes that were used last
  std::vector<int64_t> sizes_;           // its own
};

// The index of the largest, the first among equals: rank classification.
size_t MostProbable(std::span<const double> log_probabilities);

}  // namespace syntra
