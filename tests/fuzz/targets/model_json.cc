// SPDX-License-Identifier: Apache-2.0
// model.json of a model as `convert --to safetensors` writes it, beside a tokenizer and the tensors
// of one such model.
#include <google/protobuf/text_format.h>

#include <algorithm>
#include <cstring>

#include "convert/formats.h"
#include "fuzz/target.h"
#include "model/programs.h"

namespace syntra {
namespace {

constexpr const char* kModels[] = {
    "vocabulary_size: 128 width: 8 encoder_layers: 1 decoder_layers: 1 feed_forward { width: 8 } "
    "mixer { attention { heads: 2 head_size: 4 } } cross_attention { heads: 2 head_size: 4 }",
    "architecture: DECODER_ONLY vocabulary_size: 128 width: 8 decoder_layers: 1 "
    "feed_forward { width: 8 } "
    "mixer { attention { heads: 2 head_size: 4 term { random { max_length: 16 } } } }"};

class Zeros final : public TensorSource {
 public:
  explicit Zeros(const ModelConfig& model) {
    const ParameterStore parameters = DeclareParameters(Model(model));
    for (const Parameter& parameter : parameters.all()) {
      tensors_.emplace(parameter.name, TensorType{DType::kF32, parameter.shape});
    }
  }
  void Read(std::string_view, std::span<float> values) override { std::ranges::fill(values, 0.0f); }
};

// Writes a model, and gives its model.json.
std::string Write(const char* text) {
  const Path directory = InputDirectory() / "model";
  RemoveAll(directory);
  CreateDirectories(directory);
  StoredModel model;
  SYNTRA_CHECK(google::protobuf::TextFormat::ParseFromString(text, model.config.mutable_model()));
  const bool decoder = model.config.model().architecture() == ModelConfig::DECODER_ONLY;
  model.config.mutable_data()->set_objective(decoder ? DataConfig::CAUSAL_LM
                                                     : DataConfig::SPAN_CORRUPTION);
  model.config.mutable_data()->set_extra_ids(12);
  model.config.mutable_data()->set_input_length(16);
  model.tokenizer = SourceFile("tests/golden/t5_v1_0/spiece.model");
  model.parameters = std::make_unique<Zeros>(model.config.model());
  kSafetensorsFormat.write(model, directory, {});
  return ReadWholeFile(directory / "model.json");
}

void Run(std::string_view input) {
  static const std::string sound = Write(kModels[0]);
  const Path directory = InputFile(input, "model/model.json").parent_path();
  try {
    kSafetensorsFormat.open(directory, "");
  } catch (const Error& error) {
    // A description of another model is sound, too.
    if (!std::strstr(error.what(), " the parameter ")) throw;
  }
}

// The last one that is written is the one whose tensors lie there.
std::vector<std::string> Seeds() {
  const std::string other = Write(kModels[1]);
  return {Write(kModels[0]), other};
}

}  // namespace

const Target fuzz_model_json = {
    .name = "model_json",
    .refusals = {ExitCode::kCheckpoint, ExitCode::kConfig, ExitCode::kData},
    .run = Run,
    .seeds = Seeds,
    .tokens = {"\"model\":", "\"data\":", "\"encoder_layers\":", "\"mixer\":{", "\"term\":[",
               "2147483647", "-1", "1e300", "\"NaN\"", "\"Infinity\"", "null", "[", "{"},
    .mutations = 4000};

}  // namespace syntra
