// SPDX-License-Identifier: Apache-2.0
// A stored model that runs, for tests: its logits and its greedy continuations by whole forward
// passes.
#pragma once

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "base/json.h"
#include "convert/stored_model.h"
#include "decode/session.h"
#include "kernels/tested.h"
#include "model/model_trial.h"
#include "program/numbers.h"

namespace syntra {

inline Path Golden(const std::string& name) {
  return Path(SYNTRA_SOURCE_DIR) / "tests/golden" / name;
}

inline std::vector<int32_t> Flat(const Json& rows) {
  std::vector<int32_t> ids;
  for (const Json& row : rows) {
    for (const Json& id : row) ids.push_back(id);
  }
  return ids;
}

// A model in memory that gives logits.
class Running {
 public:
  Running(const ModelConfig& config,
          const std::function<void(const std::string&, std::span<float>)>& read)
      : model_(config),
        parameters_(DeclareParameters(model_)),
        memory_(parameters_, FastBackend()) {
    for (const Parameter& parameter : parameters_.all()) {
      std::vector<float> values(parameter.shape.size());
      read(parameter.name, values);
      memory_.SetParameter(parameter, values);
    }
  }
  explicit Running(StoredModel stored)
      : Running(stored.config.model(), [&](const std::string& name, std::span<float> values) {
          stored.parameters->Read(name, values);
        }) {}

  TrainedModel Trained() {
    return {model_, parameters_, memory_.arenas().parameters, DType::kF32, FastBackend()};
  }

  // [B, T, V]
  std::vector<double> Logits(const TrialBatch& batch) {
    Executable forward(LogitsProgram(model_, parameters_, DType::kF32, batch.shape), FastBackend(),
                       memory_.arenas());
    SetBatch(batch, forward);
    forward.Run();
    return Numbers(forward.Tensor("logits"));
  }

  // The arg max of the last position, `count` times.
  std::vector<std::vector<int32_t>> Greedy(TrialBatch batch, int64_t count) {
    const int64_t rows = batch.shape.rows, vocabulary = model_.config().vocabulary_size();
    batch.shape.target_length = count;
    batch.decoder_ids.assign(rows * count, 0);
    batch.decoder_segments.assign(rows * count, 1);
    std::vector<std::vector<int32_t>> outputs(rows);
    for (int64_t t = 0; t < count; ++t) {
      const std::vector<double> logits = Logits(batch);
      for (int64_t row = 0; row < rows; ++row) {
        const auto scores = logits.begin() + (row * count + t) * vocabulary;
        outputs[row].push_back(
            static_cast<int32_t>(std::max_element(scores, scores + vocabulary) - scores));
        if (t + 1 < count) batch.decoder_ids[row * count + t + 1] = outputs[row].back();
      }
    }
    return outputs;
  }

 private:
  Model model_;
  ParameterStore parameters_;
  ArenaMemory memory_;
};

inline TrialBatch BatchOf(const Json& expected) {
  const Json& inputs = expected.at("encoder_ids");
  const Json& targets = expected.at("decoder_ids");
  return {.shape = {static_cast<int64_t>(inputs.size()), static_cast<int64_t>(inputs[0].size()),
                    static_cast<int64_t>(targets[0].size())},
          .encoder_ids = Flat(inputs),
          .encoder_segments = Flat(expected.at("encoder_segments")),
          .decoder_ids = Flat(targets),
          .decoder_segments = Flat(expected.at("decoder_segments")),
          .prefix_ends = std::vector<int32_t>(Flat(targets).size())};
}

}  // namespace syntra
