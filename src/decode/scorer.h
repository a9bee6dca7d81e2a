// SPDX-License-Identifier: Apache-2.0
// Log-probabilities of given targets: of one, or of the labels of a set, which share one encoder
// pass where there is an encoder.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "decode/batch_decoder.h"
#include "dist/communicator.h"

namespace syntra {

struct ScoreRequest {
  std::vector<int32_t> ids;                   // of the input, with its EOS if it has one
  std::vector<std::vector<int32_t>> targets;  // one at least, with their EOS if they have one
};

class Scorer {
 public:
  // Uses only the lengths of `settings`, which no request may exceed. The model must outlive this.
  Scorer(const TrainedModel& model, const DecodeSettings& settings)
      : model_(model), settings_(settings) {}

  // The natural logarithm of each target's probability, in the order of requests and targets.
  std::vector<std::vector<double>> Score(std::span<const ScoreRequest> requests);
  // All ranks give the same requests, share the work, and get all results.
  std::vector<std::vector<double>> Score(std::span<const ScoreRequest> requests,
                                         Communicator& ranks, const OnBatch& on_batch = {});

 private:
  const RowLayout& layout() const;
  BatchShape ShapeOf(const RequestBatch& batch) const;
  Executable& ProgramFor(const RequestBatch& batch);
  std::vector<std::vector<double>> ScoreOne(std::span<const ScoreRequest> requests,
                                            const RequestBatch& batch);

  TrainedModel model_;
  DecodeSettings settings_;
  std::unique_ptr<Executable> program_;  // of the sizes that were used last
  BatchShape shape_;                     // of the program
  int64_t targets_per_input_ = 0;
};

// The index of the largest, the first among equals: rank classification.
size_t MostProbable(std::span<const double> log_probabilities);

}  // namespace syntra
