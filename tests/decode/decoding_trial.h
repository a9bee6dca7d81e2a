// SPDX-License-Identifier: Apache-2.0
// A small model with its parameters on the backend under test, to be decoded; and its log-
// probabilities by the full forward pass, which has no caches.
#pragma once

#include <google/protobuf/text_format.h>

#include <vector>

#include "decode/strategy.h"
#include "kernels/tested.h"
#include "model/model_trial.h"
#include "program/numbers.h"

namespace syntra {

struct DecodingTrial {
  // The sharpness multiplies the parameters' first values: at 3 they are large enough for outputs
  // that vary, and at 1 for the roundings of a model as it is used.
  explicit DecodingTrial(const ModelConfig& config, double sharpness = 3,
                         Backend& on = FastBackend())
      : backend(on),
        model(config),
        parameters(DeclareParameters(model)),
        memory(parameters, backend) {
    FillParameters(parameters, memory, sharpness);
  }

  TrainedModel Trained(DType activations = DType::kF32) {
    return {model, parameters, memory.arenas().parameters, activations, backend};
  }

  // log p of every token after each position of the batch's decoder ids: [B * T][V].
  std::vector<std::vector<double>> LogProbabilities(const TrialBatch& batch,
                                                    DType activations = DType::kF32) {
    Executable forward(LogitsProgram(model, parameters, activations, batch.shape), backend,
                       memory.arenas());
    SetBatch(batch, forward);
    forward.Run();
    const std::vector<double> logits = Numbers(forward.Tensor("logits"));
    const int64_t vocabulary = model.config().vocabulary_size();
    std::vector<std::vector<double>> rows;
    for (auto at = logits.begin(); at != logits.end(); at += vocabulary) {
      std::vector<double>& row = rows.emplace_back(at, at + vocabulary);
      double sum = 0;
      for (const double logit : row) sum += std::exp(logit);
      for (double& logit : row) logit -= std::log(sum);
    }
    return rows;
  }

  Backend& backend;
  Model model;
  ParameterStore parameters;
  ArenaMemory memory;
};

inline DecodingConfig DecodingOf(const std::string& text) {
  DecodingConfig config;
  SYNTRA_CHECK(google::protobuf::TextFormat::ParseFromString(text, &config), "{}", text);
  return config;
}

// Every strategy with its default settings, and those that can with several outputs.
inline std::vector<std::string> TrialDecodings() {
  std::vector<std::string> decodings{"beam { size: 3 } outputs: 2",
                                     "sample { top_k: 20 } outputs: 2"};
  for (const std::string& name : StrategyNames()) decodings.push_back(name + " {}");
  return decodings;
}

inline const char* kUntied = "tied_embeddings: false";

}  // namespace syntra
