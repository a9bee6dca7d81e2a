// SPDX-License-Identifier: Apache-2.0
#include "model/model_trial.h"

#include <google/protobuf/text_format.h>

#include "core/random.h"
#include "mixers/mixer_cases.h"
#include "model/recurrence.h"
#include "program/numbers.h"

namespace syntra {

TrialBatch RandomBatch(const BatchShape& shape, int64_t vocabulary) {
  const int64_t inputs = shape.rows * shape.input_length,
                targets = shape.rows * shape.target_length;
  TrialBatch batch{.shape = shape,
                   .encoder_ids = {},
                   .encoder_segments = std::vector<int32_t>(inputs, 1),
                   .decoder_ids = {},
                   .decoder_segments = std::vector<int32_t>(targets, 1),
                   .targets = {},
                   .prefix_ends = std::vector<int32_t>(targets),
                   .dropout_keys = {}};
  const auto id = [&](uint32_t bits) {
    return static_cast<int32_t>(3 + UniformBelow(bits, static_cast<uint32_t>(vocabulary - 3)));
  };
  for (int64_t i = 0; i < inputs; ++i) batch.encoder_ids.push_back(id(RandomAt({5, 1}, i)[0]));
  for (int64_t i = 0; i < targets; ++i) {
    batch.decoder_ids.push_back(i % shape.target_length == 0 ? 0 : batch.targets.back());
    batch.targets.push_back(id(RandomAt({5, 2}, i)[0]));
  }
  for (int32_t row = 0; row < shape.rows; ++row) {
    batch.dropout_keys.push_back(row + 1);
    batch.dropout_keys.push_back(9);
  }
  return batch;
}

TrialBatch FittedBatch(const ModelConfig& config, TrialBatch batch) {
  const Outputs outputs = ArchitectureOf(config).outputs();
  if (outputs == Outputs::kMaskedTokens) {
    batch.encoder_ids = batch.decoder_ids;
    batch.encoder_segments = batch.decoder_segments;
    batch.shape.input_length = batch.shape.target_length;
  }
  if (outputs != Outputs::kClasses) return batch;
  std::vector<int32_t> classes;
  for (int64_t row = 0; row < batch.shape.rows; ++row) {
    classes.push_back(batch.targets[row * batch.shape.target_length]);
  }
  batch.targets = std::move(classes);
  batch.shape.target_length = 1;
  return batch;
}

void SetPrefixes(TrialBatch* batch, int64_t inputs) {
  const int64_t length = batch->shape.target_length;
  for (size_t i = 0; i < batch->prefix_ends.size(); ++i) {
    const bool reads = static_cast<int64_t>(i) % length <= inputs;
    batch->prefix_ends[i] = reads ? static_cast<int32_t>(inputs + 1) : 0;
  }
}

ModelConfig TinyModel(const std::string& mixer, const std::string& more) {
  ModelConfig config;
  const std::string text =
      "width: 16 encoder_layers: 2 decoder_layers: 2 vocabulary_size: 32 "
      "feed_forward { width: 24 } cross_attention { heads: 2 head_size: 8 } "
      "relative_bias { buckets: 8 max_distance: 16 } mixer { " +
      (mixer.empty() ? TrialMixers().at("dot") : mixer) + " } " + more;
  SYNTRA_CHECK(google::protobuf::TextFormat::ParseFromString(text, &config), "{}", text);
  const MixerTraits traits = MakeMixer(config.mixer())->traits();
  if (!traits.sees_order && !config.has_positions())
    config.mutable_positions()->mutable_sinusoidal();
  if (!traits.causal) {
    const std::string dot = TrialMixers().at("dot");
    SYNTRA_CHECK(google::protobuf::TextFormat::ParseFromString(dot, config.mutable_decoder_mixer()),
                 "{}", dot);
  }
  return config;
}

ModelConfig TinyDecoder(const std::string& mixer, const std::string& more) {
  ModelConfig config;
  const std::string text =
      "architecture: DECODER_ONLY width: 16 decoder_layers: 2 vocabulary_size: 32 "
      "feed_forward { width: 24 } relative_bias { buckets: 8 max_distance: 16 } mixer { " +
      (mixer.empty() ? TrialMixers().at("dot") : mixer) + " } " + more;
  SYNTRA_CHECK(google::protobuf::TextFormat::ParseFromString(text, &config), "{}", text);
  return config;
}

ModelConfig TinyEncoder(const std::string& head) {
  ModelConfig config;
  const std::string text =
      "architecture: ENCODER_ONLY width: 16 encoder_layers: 2 vocabulary_size: 32 "
      "feed_forward { width: 24 } relative_bias { buckets: 8 max_distance: 16 } mixer { " +
      TrialMixers().at("dot") + " } classifier { classes: 31 " + head + " }";
  SYNTRA_CHECK(google::protobuf::TextFormat::ParseFromString(text, &config), "{}", text);
  return config;
}

ModelConfig TinyMaskedLm() {
  ModelConfig config = TinyEncoder("");
  config.clear_classifier();
  config.set_architecture(ModelConfig::ENCODER_MASKED_LM);
  return config;
}

ModelConfig ListedModel(const std::string& fields, ModelConfig config) {
  ModelConfig upper;
  SYNTRA_CHECK(google::protobuf::TextFormat::ParseFromString(fields, &upper), "{}", fields);
  config.MergeFrom(upper);
  return config;
}

const std::map<std::string, std::string>& TrialMixers() {
  static const std::map<std::string, std::string> mixers = [] {
    std::map<std::string, std::string> texts;
    for (const MixerInModel& mixer : MixersInModels()) texts[mixer.name] = mixer.text;
    return texts;
  }();
  return mixers;
}

namespace {

// A stack in which positions halt after few steps, after a layer of its own.
std::string HaltingStack(const std::string& side, const std::string& step_signal) {
  return side + " { layers {} layers { repeat: 4 recurrence { step_signal: " + step_signal +
         " halting { epsilon: 0.2 bias: 0 loss_weight: 0.5 } } } } ";
}

}  // namespace

const std::map<std::string, std::string>& TrialBodies() {
  static const std::map<std::string, std::string> bodies{
      {"transformer_2017",
       "norm: LAYER_NORM norm_placement: AFTER positions { sinusoidal {} } scaled_embeddings: true "
       "feed_forward { bias: true } mixer { attention { relative_bias: false } }"},
      {"learned_positions",
       "norm: LAYER_NORM positions { learned { max_length: 16 } } "
       "feed_forward { activation: GATED_GELU bias: true }"},
      {"rms_norm_after",
       "norm_placement: AFTER positions { sinusoidal { layout: HALVES } } "
       "feed_forward { activation: GELU }"},
      {"universal",
       "norm: LAYER_NORM positions { sinusoidal {} } "
       "encoder { layers { repeat: 3 recurrence {} } } "
       "decoder { layers { repeat: 3 recurrence { step_signal: LEARNED } } }"},
      {"universal_halting", "positions { sinusoidal { layout: HALVES } } " +
                                HaltingStack("encoder", "SINUSOIDAL") +
                                HaltingStack("decoder", "LEARNED")}};
  return bodies;
}

std::map<std::string, ModelConfig> TrialModels() {
  std::map<std::string, ModelConfig> models;
  for (const auto& [name, mixer] : TrialMixers()) models[name] = TinyModel(mixer);
  for (const auto& [name, fields] : TrialBodies()) models[name] = ListedModel(fields);
  models["encoder_masked_lm"] = TinyMaskedLm();
  models["encoder_only"] = TinyEncoder("");
  models["encoder_only_listed"] = ListedModel("encoder { layers { repeat: 2 } }", TinyEncoder(""));
  models["encoder_only_first_token"] = TinyEncoder("pooling: FIRST");
  models["decoder_only"] = TinyDecoder();
  models["decoder_only_prefix"] = TinyDecoder("", "bidirectional_prefix: true");
  models["decoder_only_halting"] = ListedModel(
      "positions { learned { max_length: 16 } } " + HaltingStack("decoder", "NONE"), TinyDecoder());
  models["decoder_only_random_and_dot"] = TinyDecoder(TrialMixers().at("random_and_dot"));
  return models;
}

void FillParameters(const ParameterStore& parameters, ArenaMemory& memory, double factor) {
  for (const Parameter& parameter : parameters.all()) {
    std::vector<float> values(parameter.shape.size());
    Initialize(parameter, 3, values);
    if (parameter.initializer.kind != Initializer::Kind::kConstant &&
        parameter.name != "embedding") {
      for (float& value : values) value = static_cast<float>(value * factor);
    }
    memory.SetParameter(parameter, values);
  }
}

void SetInversePositions(Side side, const std::vector<int32_t>& segments, Executable& executable) {
  const std::string name = InversePositionsName(side);
  if (!executable.Has(name)) return;
  const auto padding = std::ranges::count(segments, 0);
  const float inverse = 1 / static_cast<float>(std::ssize(segments) - padding);
  executable.SetInput(name, std::span(&inverse, 1));
}

void SetBatch(const TrialBatch& batch, Executable& executable) {
  const auto set = [&](const std::string& name, const std::vector<int32_t>& values) {
    if (executable.Has(name)) executable.SetInput(name, std::span<const int32_t>(values));
  };
  const auto positions = [](const std::vector<int32_t>& segments, int64_t length) {
    std::vector<int32_t> result(segments.size());
    for (size_t i = 0; i < segments.size(); ++i) {
      const bool starts = i % length == 0 || segments[i] != segments[i - 1];
      result[i] = starts ? 0 : result[i - 1] + 1;
    }
    return result;
  };
  set("encoder_ids", batch.encoder_ids);
  set("encoder_segments", batch.encoder_segments);
  set("encoder_positions", positions(batch.encoder_segments, batch.shape.input_length));
  set("decoder_ids", batch.decoder_ids);
  set("decoder_segments", batch.decoder_segments);
  set("decoder_positions", positions(batch.decoder_segments, batch.shape.target_length));
  set("decoder_prefix_ends", batch.prefix_ends);
  SetInversePositions(Side::kEncoder, batch.encoder_segments, executable);
  SetInversePositions(Side::kDecoder, batch.decoder_segments, executable);
  set("targets", batch.targets);
  set("dropout_keys", batch.dropout_keys);
}

ModelSetting DropoutSetting(DropoutNoise noise) {
  ModelSetting setting{
      .config =
          TinyModel("attention { heads: 2 head_size: 8 dropout: 0.3 term { dot_product {} } }",
                    "dropout: 0.3")};
  setting.config.mutable_cross_attention()->set_dropout(0.3);
  setting.config.set_dropout_noise(noise);
  return setting;
}

ModelTrial::ModelTrial(const ModelSetting& setting, const TrialBatch& batch, Backend& backend,
                       TransientMemory transients)
    : model_(setting.config), parameters_(DeclareParameters(model_)) {
  memory_ = std::make_unique<ArenaMemory>(parameters_, backend);
  FillParameters(parameters_, *memory_);
  executable_ = std::make_unique<Executable>(
      TrainingProgram(model_, parameters_, setting.activations, batch.shape, setting.loss,
                      setting.recompute, setting.join),
      backend, memory_->arenas(), transients);
  SetBatch(batch, *executable_);
  const auto inverse = static_cast<float>(setting.inverse_denominator);
  executable_->SetInput("inverse_denominator", std::span(&inverse, 1));
}

double ModelTrial::Run() {
  memory_->ClearGradients();
  executable_->RunChecked();
  return executable_->Scalar("loss");
}

std::map<std::string, std::vector<double>> ModelTrial::Gradients() const {
  std::map<std::string, std::vector<double>> gradients;
  for (const Parameter& p : parameters_.all()) gradients[p.name] = memory_->Gradient(p);
  return gradients;
}

Program LogitsProgram(const Model& model, ParameterStore& parameters, DType activations,
                      const BatchShape& shape) {
  ProgramBuilder builder;
  Recording recording{.program = builder, .parameters = parameters, .activations = activations};
  const Scope root(recording);
  const Value hidden =
      model.architecture().RecordHidden(model, root, shape, 1, TrainConfig::NOTHING);
  const Value wide = root.One("copy", {{"dtype", std::string("f32")}}, {hidden});
  const Value scaled = root.One("affine", {{"scale", model.LogitScale()}, {"shift", 0.0}}, {wide});
  builder.Output(
      "logits",
      root.One("matmul",
               {{"transpose_a", false}, {"transpose_b", true}, {"dtype", std::string("f32")}},
               {scaled, model.OutputTable(root)}));
  return std::move(builder).Build();
}

}  // namespace syntra
