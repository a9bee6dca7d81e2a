// SPDX-License-Identifier: Apache-2.0
#include "decode/scorer.h"

#include <algorithm>

#include "decode/share.h"
#include "dist/self.h"
#include "model/programs.h"

namespace syntra {
namespace {

RequestSize SizeOf(const ScoreRequest& request) {
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

// [rows, length], row-major. Rows and slots without a target have target -1.
struct DecoderRows {
  DecoderRows(int64_t rows, int64_t length)
      : length(length), ids(rows * length), segments(rows * length), targets(rows * length, -1) {}

  // The row reads its targets moved right by one, behind a 0.
  void Set(int64_t row, std::span<const int32_t> target) {
    const int64_t begin = row * length;
    std::ranges::copy(target, targets.begin() + begin);
    std::copy(target.begin(), target.end() - 1, ids.begin() + begin + 1);
    std::fill_n(segments.begin() + begin, target.size(), 1);
  }

  int64_t length;
  std::vector<int32_t> ids, segments, targets;
};

// 0, 1, 2.. in each row.
std::vector<int32_t> Positions(int64_t rows, int64_t length) {
  std::vector<int32_t> positions(rows * length);
  for (int64_t i = 0; i < rows * length; ++i) positions[i] = static_cast<int32_t>(i % length);
  return positions;
}

void Set(Executable& program, const char* name, const std::vector<int32_t>& values) {
  if (program.Has(name)) program.SetInput(name, std::span<const int32_t>(values));
}

}  // namespace

Executable& Scorer::ProgramFor(const RequestBatch& batch) {
  const auto& [rows, input, output] = batch.largest;
  const std::vector<int64_t> sizes{batch.inputs, rows, input, output};
  if (!program_ || sizes_ != sizes) {
    program_.reset();  // first, so that the memory of both is never needed
    program_ = std::make_unique<Executable>(
        ScoringProgram(model_.model, model_.parameters, model_.activations,
                       {batch.inputs, input, output}, rows),
        model_.backend,
        Arenas{.parameters = model_.values,
               .gradients = nullptr,
               .state = nullptr,
               .transients = model_.transients});
    sizes_ = sizes;
  }
  return *program_;
}

std::vector<std::vector<double>> Scorer::ScoreOne(std::span<const ScoreRequest> requests,
                                                  const RequestBatch& batch) {
  const auto& [width, input, output] = batch.largest;
  std::vector<std::span<const int32_t>> inputs;
  DecoderRows decoder(batch.inputs * width, output);
  for (size_t i = 0; i < batch.requests.size(); ++i) {
    const ScoreRequest& request = requests[batch.requests[i]];
    inputs.emplace_back(request.ids);
    for (int64_t k = 0; k < width; ++k) {
      decoder.Set(static_cast<int64_t>(i) * width + k, request.targets[k]);
    }
  }
  const EncoderRows encoder = RowsOf(batch, inputs);
  Executable& program = ProgramFor(batch);
  Set(program, "encoder_ids", encoder.ids);
  Set(program, "encoder_segments", encoder.segments);
  Set(program, "encoder_positions", Positions(batch.inputs, input));
  Set(program, "decoder_ids", decoder.ids);
  Set(program, "decoder_segments", decoder.segments);
  Set(program, "decoder_positions", Positions(batch.inputs * width, output));
  Set(program, "targets", decoder.targets);
  program.Run();
  const std::span<const float> tokens = program.Tensor("log_probabilities").As<float>();
  std::vector<std::vector<double>> scores(batch.requests.size(), std::vector<double>(width));
  for (size_t i = 0; i < scores.size() * width; ++i) {
    double& sum = scores[i / width][i % width];
    for (const float token : tokens.subspan(i * output, output)) sum += token;
  }
  return scores;
}

std::vector<std::vector<double>> Scorer::Score(std::span<const ScoreRequest> requests,
                                               Communicator& ranks, const OnBatch& on_batch) {
  std::vector<RequestSize> sizes;
  for (const ScoreRequest& request : requests) sizes.push_back(SizeOf(request));
  const std::vector<RequestBatch> batches = BatchesBySize(sizes, input_length_, target_length_);
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
