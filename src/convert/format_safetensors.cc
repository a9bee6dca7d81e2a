// SPDX-License-Identifier: Apache-2.0
// Any model of this program in files that other programs read: model.safetensors under the names
// and in the shapes of the checkpoints, model.json with the configuration, tokenizer.model.
#include <google/protobuf/util/json_util.h>

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"
#include "checkpoint/layout.h"
#include "convert/formats.h"
#include "model/layers.h"
#include "model/programs.h"

namespace syntra {
namespace {

constexpr const char* kModelFile = "model.json";
constexpr const char* kFormatName = "syntra 1";  // the version of this layout
constexpr int64_t kMaxJsonBytes = 256 << 10;

bool Recognizes(const Path& directory) { return Exists(directory / kModelFile); }

void NameTerms(MixerConfig* mixer) {
  AttentionConfig* attention = MutableAttention(mixer);
  if (attention && attention->term_size() == 0) attention->add_term()->mutable_dot_product();
}

Json ToJson(const google::protobuf::Message& message, bool defaults) {
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  options.always_print_primitive_fields = defaults;
  std::string text;
  const auto status = google::protobuf::util::MessageToJsonString(message, &text, options);
  SYNTRA_CHECK(status.ok(), "{}", std::string(status.message()));
  return ParseJson(text);
}

// Every field of the model, defaults too, so that a reader need not know them.
Json ModelToJson(ModelConfig model) {
  if (!model.has_decoder_mixer()) *model.mutable_decoder_mixer() = model.mixer();
  if (!model.has_encoder()) model.set_encoder_layers(model.encoder_layers());
  if (!model.has_decoder()) model.set_decoder_layers(model.decoder_layers());
  model = WithNamedSublayers(model);
  NameTerms(model.mutable_mixer());
  NameTerms(model.mutable_decoder_mixer());
  for (LayerConfig* layer : ListedLayers(&model)) NameTerms(layer->mutable_mixer());
  model.mutable_feed_forward();
  model.mutable_cross_attention();
  model.mutable_relative_bias();
  model.mutable_classifier();
  ClearForeignFields(&model);
  Json json = ToJson(model, /*defaults=*/true);
  // Numbers and flags are printed even where they are not set.
  for (const std::string& name : ArchitectureOf(model).foreign_fields()) json.erase(name);
  json.erase("attention_dropout");  // short for rates that are there
  return json;
}

// The facts about the data that a reader needs: how rows are made, and the tasks that the model has
// learned.
Json DataToJson(const DataConfig& data) {
  DataConfig tasks;
  *tasks.mutable_task() = data.task();
  Json json = ToJson(tasks, /*defaults=*/false);
  json["extra_ids"] = data.extra_ids();
  json["input_length"] = data.input_length();
  if (data.target_length() > 0) json["target_length"] = data.target_length();
  // From these follows the length of targets where none is set.
  json["noise_density"] = data.noise_density();
  json["mean_span_length"] = data.mean_span_length();
  json["objective"] = DataConfig::Objective_Name(data.objective());
  json["pack"] = data.pack();
  return json;
}

void FromJson(const Json& json, const Path& path, google::protobuf::Message* message) {
  const auto status = google::protobuf::util::JsonStringToMessage(JsonText(json), message);
  if (status.ok()) return;
  Fail(ExitCode::kCheckpoint, "{}: {}", path.string(), Printable(std::string(status.message())));
}

// The configuration, and which tokenizer the model was trained with.
void ReadModelFile(const Path& path, StoredModel* model) {
  Config& config = model->config;
  try {
    const Json json = ParseJson(ReadWholeFile(path, kMaxJsonBytes, ExitCode::kCheckpoint));
    if (json.at("format") != kFormatName) {
      Fail(ExitCode::kCheckpoint, "{} is of the format {}; this program reads \"{}\"",
           path.string(), Printable(JsonText(json.at("format")), 80), kFormatName);
    }
    FromJson(json.at("model"), path, config.mutable_model());
    FromJson(json.at("data"), path, config.mutable_data());
    model->tokenizer_identity = json.value(kTokenizerAttribute, "");
  } catch (const Json::exception& error) {
    Fail(ExitCode::kCheckpoint, "{} does not describe a model: {}", path.string(), error.what());
  }
}

// The tensors are the model's parameters, no more and no less.
void CheckParameters(const TensorSource& tensors, const ModelConfig& model, const Path& directory) {
  const ParameterStore parameters = DeclareParameters(Model(model));
  for (const Parameter& parameter : parameters.all()) {
    const auto found = tensors.tensors().find(parameter.name);
    if (found != tensors.tensors().end() && found->second.shape == parameter.shape) continue;
    Fail(ExitCode::kCheckpoint, "{} {} the parameter {} {}, which {} asks for", directory.string(),
         found == tensors.tensors().end() ? "lacks" : "has in another shape", parameter.name,
         ToString(parameter.shape), kModelFile);
  }
  if (tensors.tensors().size() == parameters.all().size()) return;
  Fail(ExitCode::kCheckpoint, "{} has {} tensors, but the model of {} has {} parameters",
       directory.string(), tensors.tensors().size(), kModelFile, parameters.all().size());
}

StoredModel Open(const Path& directory, const Path& tokenizer) {
  StoredModel model;
  model.path = directory;
  model.source = std::filesystem::absolute(directory).lexically_normal().string();
  ReadModelFile(directory / kModelFile, &model);
  ReadTokenizer(directory, kTokenizerFile, tokenizer, &model);
  Complete(&model);
  model.parameters = std::make_unique<SafetensorsSource>(directory);
  CheckParameters(*model.parameters, model.config.model(), directory);
  return model;
}

void Write(StoredModel& model, const Path& directory, const SafetensorsOptions& options) {
  const Json json = {{"format", kFormatName},
                     {"model", ModelToJson(model.config.model())},
                     {"data", DataToJson(model.config.data())},
                     {kTokenizerAttribute, model.tokenizer_identity}};
  ReplaceFileDurably(directory / kModelFile, JsonText(json, 2) + "\n");
  ReplaceFileDurably(directory / kTokenizerFile, model.tokenizer);
  WriteTensors(*model.parameters, directory, options);
}

}  // namespace

const ModelFormat kSafetensorsFormat = {"safetensors", kTokenizerFile, Recognizes, Open, Write};

}  // namespace syntra
