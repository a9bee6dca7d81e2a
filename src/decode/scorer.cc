// SPDX-License-Identifier: Apache-2.0
#include "decode/scorer.h"

#include <algorithm>

#include "decode/distribution.h"
#include "decode/share.h"
#include "dist/self.h"
#include "model/programs.h"

namespace syntra {
namespace {

RequestSize RequestSizeOf(const ScoreRequest& request) {
  RequestSize size{.rows = static_cast<int64_t>(request.targets.size()),
                   .input = static_cast<int64_t>(request.ids.size()),
                   .output = 0};
  SYNTRA_CHECK(size.rows > 0, "a request without targets");
  for (const std::vector<int32_t>& target : request.targets) {
    SYNTRA_CHECK(!target.empty(), "a target without tokens");
    size.output = std::max(size.output, static_cast<int64_t>(target.size()));
  }
  return size;
}

}  // namespace

const RowLayout& Scorer::layout() const { return model_.model.architecture().layout(); }

BatchShape Scorer::ShapeOf(const RequestBatch& batch) const {
  ExampleLengths slots = layout().SlotsOf({batch.largest.input, batch.largest.output});
  // `together` and the targets of the batch are both rounded up.
  if (settings_.together > 0) slots.targets = std::min(slots.targets, settings_.together);
  return {batch.inputs, slots.inputs, slots.targets};
}

Executable& Scorer::ProgramFor(const RequestBatch& batch) {
  const BatchShape shape = ShapeOf(batch);
  const int64_t targets_per_input = batch.largest.rows;
  if (!program_ || shape_ != shape || targets_per_input_ != targets_per_input) {
    program_.reset();  // first, so that the memory of both is never needed
    program_ =
        std::make_unique<Executable>(ScoringProgram(model_.model, model_.parameters,
                                                    model_.activations, shape, targets_per_input),
                                     model_.backend, model_.arenas());
    shape_ = shape;
    targets_per_input_ = targets_per_input;
  }
  return *program_;
}

std::vector<std::vector<double>> Scorer::ScoreOne(std::span<const ScoreRequest> requests,
                                                  const RequestBatch& batch) {
  const int64_t width = batch.largest.rows;
  const BatchShape shape = ShapeOf(batch);
  Batch rows(shape.rows, shape.input_length, shape.target_length, width);
  std::ranges::fill(rows["targets"], kIgnoredTarget);
  for (int64_t row = 0; row < batch.inputs * width; ++row) {
    // The last request fills the rows after.
    const size_t i = std::min<size_t>(row / width, batch.requests.size() - 1);
    const ScoreRequest& request = requests[batch.requests[i]];
    const std::vector<int32_t>& target = request.targets[row % width];
    RowWriter(layout(), row, &rows)
        .Append({std::ssize(request.ids), std::ssize(target)}, [&](const ExampleSlots& slots) {
          std::ranges::copy(request.ids, slots.inputs.begin());
          std::ranges::copy(target, slots.targets.begin());
        });
  }
  Executable& program = ProgramFor(batch);
  SetBatchInputs(program, rows);
  program.Run();
  const std::span<const float> tokens = program.Tensor("log_probabilities").As<float>();
  std::vector<std::vector<double>> scores(batch.requests.size(), std::vector<double>(width));
  for (size_t i = 0; i < scores.size() * width; ++i) {
    double& sum = scores[i / width][i % width];
    for (const float token : tokens.subspan(i * shape.target_length, shape.target_length)) {
      sum += token;
    }
    Finite(sum);
  }
  return scores;
}

std::vector<std::vector<double>> Scorer::Score(std::span<const ScoreRequest> requests,
                                               Communicator& ranks, const OnBatch& on_batch) {
  std::vector<RequestSize> sizes;
  for (const ScoreRequest& request : requests) sizes.push_back(RequestSizeOf(request));
  // Beside a short input a target may fill the rest of the row.
  const int64_t longest = settings_.together > 0 ? settings_.together : settings_.output_length;
  const std::vector<RequestBatch> batches = BatchesBySize(sizes, settings_.input_length, longest);
  return ShareBatches<std::vector<double>>(
      batches, requests.size(), ranks,
      [&](const RequestBatch& batch) { return ScoreOne(requests, batch); }, on_batch);
}

std::vector<std::vector<double>> Scorer::Score(std::span<const ScoreRequest> requests) {
  SelfCommunicator alone;
  return Score(requests, alone);
}

size_t MostProbable(std::span<const double> log_probabilities) {
  return std::ranges::max_element(log_probabilities) - log_probabilities.begin();
}

}  // namespace syntra
