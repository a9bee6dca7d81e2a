// SPDX-License-Identifier: Apache-2.0
// A model as some format stores it, in this program's terms.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "checkpoint/read.h"
#include "configs/schema/config.pb.h"
#include "convert/tensor_source.h"

namespace syntra {

// The parameters, and possibly the optimizer's state, that a new run may start from.
struct StoredParameters {
  Path path;
  std::string source;  // the path and, of a checkpoint of a run, its step
  // The identity of the tokenizer that they were trained with (Tokenizer::identity); "": not known.
  std::string tokenizer_identity;
  // By their names in a model: "encoder/layer_00/mixer/query".
  std::unique_ptr<TensorSource> parameters;
  // The optimizer's state, by the names in a checkpoint ("optimizer/..."); nullptr: there is none.
  std::unique_ptr<TensorSource> optimizer;
  int64_t optimizer_steps = 0;  // how many the optimizer has made
};

struct StoredModel : StoredParameters {
  int64_t step = 0;
  std::string run_id;            // "": of no run
  Config config;                 // the model; what is known of its data; no tokenizer file
  std::string tokenizer;         // the SentencePiece model's bytes
  Path tokenizer_path;           // where they were, for messages
  bool brings_tokenizer = true;  // false: it was given, and nothing beside the model says which
};

// The parameters of a checkpoint, or of a single file of tensors.
StoredParameters ParametersOf(Checkpoint checkpoint);

// Reads every value of a parameter and throws Error(kCheckpoint) if one is not finite.
void ReadFinite(StoredParameters& stored, const std::string& name, std::span<float> values);

}  // namespace syntra
