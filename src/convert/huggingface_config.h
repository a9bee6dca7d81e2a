// SPDX-License-Identifier: Apache-2.0
// config.json of a Hugging Face T5 (v1.0, v1.1, FLAN-T5) and the model that it describes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "configs/schema/config.pb.h"

namespace syntra {

struct HuggingFaceConfig {
  ModelConfig model;
  int32_t input_length = 512;        // n_positions: longest input it was trained with
  int32_t eos_id = 1;                // of the tokenizer
  bool shares_embeddings = true;     // the output's matrix may be the embedding
  std::vector<std::string> unknown;  // fields that are not known here, printable
};

// Throws Error(kCheckpoint), naming the field, for what is not a T5 or has no equivalent in this
// program: another activation, another padding id and so on. Fields that are known not to affect
// the model's values are ignored.
HuggingFaceConfig ParseHuggingFaceConfig(const std::string& text);

// The text of config.json, which transformers 4 and 5 read.
std::string HuggingFaceConfigText(const HuggingFaceConfig& config);

// Throws Error(kConfig), naming the fields, unless the model is one that config.json can describe:
// dot product with relative bias and the same heads everywhere. Dropout, which config.json has one
// rate for, and first values do not count, since no trained model's values depend on them.
void CheckIsHuggingFaceModel(const ModelConfig& model);

// The model in one way of writing it, without what CheckIsHuggingFaceModel does not count: equal
// for models that compute the same.
ModelConfig CanonicalModel(const ModelConfig& model);

}  // namespace syntra
