// SPDX-License-Identifier: Apache-2.0
// A small run's checkpoint, for tests: a model with first values, one tensor of optimizer state,
// the tokenizer of the Hugging Face fixtures.
#pragma once

#include <deque>
#include <string>
#include <vector>

#include "checkpoint/layout.h"
#include "checkpoint/save.h"
#include "config/print.h"
#include "convert/running_model.h"
#include "data/tokenizer.h"

namespace syntra {

// With room for the tokenizer.
inline ModelConfig SampleModel(const std::string& mixer) {
  ModelConfig model = TinyModel(mixer);
  model.set_vocabulary_size(80);
  return model;
}

// Rows of tokens that have no text of their own (special pieces, sentinels, none at all) are small,
// so that greedy outputs are texts. `sharpness`: a factor on matrices of projections.
inline void SaveSample(const Path& run, const ModelConfig& model, float sharpness = 1,
                       int64_t step = 7,
                       const Path& tokenizer_file = Golden("t5_v1_0") / "spiece.model") {
  Config config;
  *config.mutable_model() = model;
  config.mutable_data()->set_extra_ids(12);
  config.mutable_data()->set_input_length(16);
  config.mutable_data()->set_pack(false);  // some mixers cannot have packed rows
  const std::vector<DataConfig::Objective> objectives = ArchitectureOf(model).objectives();
  if (!objectives.empty()) config.mutable_data()->set_objective(objectives.front());
  const std::string tokenizer = ReadWholeFile(tokenizer_file);
  const ParameterStore parameters = DeclareParameters(Model(model));
  std::deque<std::vector<float>> values;
  std::vector<TensorRecord> records;
  for (const Parameter& parameter : parameters.all()) {
    std::vector<float>& drawn = values.emplace_back(parameter.shape.size());
    Initialize(parameter, 3, drawn);
    if (parameter.shape.rank() == 2 && parameter.name != "embedding") {
      for (float& value : drawn) value *= sharpness;
    }
    if (parameter.name.ends_with("embedding")) {
      const int64_t width = parameter.shape[1], words = 67;
      for (int64_t i = 0; i < parameter.shape.size(); ++i) {
        if (i / width < 3 || i / width >= words) drawn[i] *= 0.05f;
      }
    }
    records.push_back({kParametersGroup + parameter.name,
                       {DType::kF32, parameter.shape},
                       std::as_bytes(std::span(drawn)).data()});
  }
  const float state = 1;
  records.push_back(
      {"optimizer/moment", {DType::kF32, {1}}, std::as_bytes(std::span(&state, 1)).data()});
  const FileRecord file{kTokenizerFile, tokenizer};
  SaveCheckpoint(
      run / kCheckpointsFolder,
      {.step = step,
       .run_id = "abc",
       .attributes = {{kConfigAttribute, MinimalConfigText(config)},
                      {kTokenizerAttribute, Tokenizer("tokenizer", tokenizer, 12).identity()}}},
      records, {.keep = 100}, {&file, 1});
}

}  // namespace syntra
