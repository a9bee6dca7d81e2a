// SPDX-License-Identifier: Apache-2.0
// config.json and the names of tensors, both ways.
#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>

#include <numeric>

#include "config/print.h"
#include "convert/huggingface_config.h"
#include "convert/huggingface_names.h"
#include "model/programs.h"

namespace syntra {
namespace {

using testing::HasSubstr;

ModelConfig Model(const std::string& text) {
  ModelConfig model;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &model)) << text;
  return model;
}

std::string Text(const ModelConfig& model) {
  Config config;
  *config.mutable_model() = CanonicalModel(model);
  return MinimalConfigText(config);
}

const std::string kSizes = R"(
  width: 24 encoder_layers: 2 decoder_layers: 3 vocabulary_size: 96 norm_epsilon: 1e-5
  mixer { attention { heads: 3 head_size: 4 } }
  cross_attention { heads: 3 head_size: 4 } relative_bias { buckets: 8 max_distance: 20 })";
const std::string kVersion10 = kSizes + " feed_forward { width: 40 }";
const std::string kVersion11 =
    kSizes + " tied_embeddings: false feed_forward { width: 40 activation: GATED_GELU }";

TEST(HuggingFaceConfig, BothWays) {
  for (const std::string& text : {kVersion10, kVersion11}) {
    const ModelConfig model = Model(text);
    CheckIsHuggingFaceModel(model);
    const HuggingFaceConfig back =
        ParseHuggingFaceConfig(HuggingFaceConfigText({.model = model, .input_length = 77}));
    EXPECT_EQ(Text(back.model), Text(model));
    EXPECT_EQ(back.input_length, 77);
    EXPECT_EQ(back.eos_id, 1);
  }
}

TEST(HuggingFaceConfig, WhatIsMissingIsAsInTransformers) {
  const HuggingFaceConfig config = ParseHuggingFaceConfig(R"({"model_type": "t5"})");
  EXPECT_EQ(Text(config.model), Text(ModelConfig()));  // T5's sizes are this program's defaults
  EXPECT_EQ(config.model.dropout(), 0.1);
  EXPECT_EQ(config.model.cross_attention().dropout(), 0.1);
  EXPECT_EQ(config.model.dropout_noise(), PER_ELEMENT);
}

// As published T5s have them, and a field that null says nothing of.
TEST(HuggingFaceConfig, UnknownFieldsAreThoseThatMayMatter) {
  const HuggingFaceConfig config = ParseHuggingFaceConfig(
      R"({"model_type": "t5", "_name_or_path": "google/flan-t5-base", "classifier_dropout": 0.0,
          "n_positions": 512, "output_past": true, "tie_encoder_decoder": null,
          "task_specific_params": {"summarization": {"num_beams": 4}}, "use_cache": true,
          "torch_dtype": "float32", "transformers_version": "4.23.1",
          "sliding_window": 8, "rope\u001b_theta": 1e4})");
  EXPECT_THAT(config.unknown, testing::ElementsAre("sliding_window", "rope\\x1b_theta"));
}

// transformers 5 writes tie_word_embeddings: true for every T5.
TEST(HuggingFaceConfig, AsTransformers5SavesAnUntiedOne) {
  const HuggingFaceConfig config = ParseHuggingFaceConfig(
      R"({"model_type": "t5", "tie_word_embeddings": true, "scale_decoder_outputs": false})");
  EXPECT_FALSE(config.model.tied_embeddings());
  EXPECT_TRUE(config.shares_embeddings);
}

TEST(HuggingFaceConfig, NamesWhatItCannotTake) {
  const std::pair<std::string, std::string> cases[] = {
      {R"("feed_forward_proj": "gated-silu")", "feed_forward_proj is \"gated-silu\""},
      {R"("is_gated_act": true)", "is_gated_act is true, but must be false"},
      {R"("dense_act_fn": "gelu")", "dense_act_fn is \"gelu\""},
      {R"("pad_token_id": 1)", "pad_token_id is 1, but must be 0"},
      {R"("decoder_start_token_id": 2)", "decoder_start_token_id"},
      {R"("is_encoder_decoder": false)", "is_encoder_decoder"},
      {R"("d_model": -4)", "d_model is -4"},
      {R"("d_model": 99999999999)", "d_model is 99999999999"},
      {R"("d_model": 16.5)", "d_model is 16.5"},
      {R"("num_layers": 0)", "num_layers is 0, but must be a number from 1"},
      {R"("num_heads": "8")", "num_heads is \"8\", but must be a number"},
      {R"("tie_word_embeddings": 1)", "must be true or false"},
      {R"("tie_word_embeddings": false, "scale_decoder_outputs": true)", "scale_decoder_outputs"},
      {R"("quantization_config": {"bits": 4})", "quantization_config"},
      {R"("eos_token_id": [1, 2])", "eos_token_id is [1,2]"},
      {R"("layer_norm_epsilon": 1e999)", "number overflow"},
      // Writing such a value took a stack frame for each of its brackets.
      {R"("d_ff": )" + std::string(100000, '[') + std::string(100000, ']'), "64 levels deep"},
  };
  for (const auto& [field, part] : cases) {
    try {
      ParseHuggingFaceConfig(R"({"model_type": "t5", )" + field + "}");
      ADD_FAILURE() << field;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::kCheckpoint);
      EXPECT_THAT(error.what(), HasSubstr(part));
    }
  }
  for (const std::string text : {"", "[]", "{}", R"({"model_type": "mt5"})", "{\"a\":"}) {
    EXPECT_THROW(ParseHuggingFaceConfig(text), Error) << text;
  }
}

TEST(HuggingFaceConfig, RefusesModelsThatTransformersDoesNotHave) {
  const std::pair<std::string, std::string> cases[] = {
      {"mixer { attention { heads: 3 head_size: 4 term { random {} } } }",
       "model.mixer has a random"},
      {"decoder_mixer { attention { heads: 3 head_size: 4 term { dense {} } } }",
       "model.decoder_mixer has a dense"},
      {"decoder_mixer { attention { heads: 6 head_size: 4 } }",
       "model.decoder_mixer.attention.heads: 3 -> 6"},
      {"cross_attention { heads: 2 }", "model.cross_attention.heads: 3 -> 2"},
      {"cross_attention { head_size: 5 }", "model.cross_attention.head_size: 4 -> 5"},
      {"mixer { attention { relative_bias: false } }", "relative_bias: true -> false"},
      {"encoder { layers {} layers { weights: 'a' } }", "model.encoder.layers[1].weights"},
      {"encoder { layers {} layers { mixer { attention { heads: 3 term { random {} } } } } }",
       "model.encoder.layers[1].mixer has a random"},
  };
  for (const auto& [text, part] : cases) {
    ModelConfig model = Model(kVersion10);
    model.MergeFrom(Model(text));
    try {
      CheckIsHuggingFaceModel(model);
      ADD_FAILURE() << text;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::kConfig);
      EXPECT_THAT(error.what(), HasSubstr(part));
      EXPECT_THAT(error.what(), HasSubstr("--to safetensors"));
    }
  }
  // Ways of writing the same.
  ModelConfig same = Model(kVersion10);
  same.mutable_mixer()->mutable_attention()->add_term()->mutable_dot_product();
  *same.mutable_decoder_mixer() = Model(kVersion10).mixer();
  same.set_dropout(0.1);
  same.mutable_encoder()->add_layers()->set_repeat(2);
  EXPECT_NO_THROW(CheckIsHuggingFaceModel(same));
}

// Tensors in memory.
class Values final : public TensorSource {
 public:
  void Add(const std::string& name, const Shape& shape, float first) {
    tensors_[name] = {DType::kF32, shape};
    values_[name].resize(shape.size());
    std::iota(values_[name].begin(), values_[name].end(), first);
  }
  void Remove(const std::string& name) {
    tensors_.erase(name);
    values_.erase(name);
  }
  void Read(std::string_view name, std::span<float> values) override {
    std::ranges::copy(values_.at(std::string(name)), values.begin());
  }

 private:
  std::map<std::string, std::vector<float>> values_;
};

std::vector<float> All(TensorSource& source, const std::string& name) {
  std::vector<float> values(source.tensors().at(name).shape.size());
  source.Read(name, values);
  return values;
}

std::unique_ptr<Values> ParametersOf(const ModelConfig& model) {
  auto values = std::make_unique<Values>();
  float first = 0;
  const ParameterStore parameters = DeclareParameters(syntra::Model(model));
  for (const Parameter& parameter : parameters.all()) {
    values->Add(parameter.name, parameter.shape, first);
    first += 1000;
  }
  return values;
}

// What transformers has, as far as a source can be copied.
std::unique_ptr<Values> Stored(TensorSource& source) {
  auto values = std::make_unique<Values>();
  for (const auto& [name, type] : source.tensors()) values->Add(name, type.shape, 0);
  return values;
}

TEST(HuggingFaceNames, BothWaysToTheBit) {
  for (const std::string& text : {kVersion10, kVersion11}) {
    const ModelConfig model = Model(text);
    const auto ours = ParametersOf(model);
    auto theirs = ToHuggingFaceNames(*ours, model);
    EXPECT_EQ(theirs->tensors().size(), ours->tensors().size());
    const std::string query = "decoder.block.2.layer.1.EncDecAttention.q.weight";
    EXPECT_EQ(theirs->tensors().at(query).shape, Shape({12, 24}));
    EXPECT_EQ(All(*theirs, query)[1], All(*ours, "decoder/layer_02/cross_attention/query")[12]);
    const auto back = FromHuggingFaceNames(std::move(theirs), model, false);
    EXPECT_EQ(back->tensors(), ours->tensors());
    for (const auto& [name, type] : ours->tensors()) EXPECT_EQ(All(*back, name), All(*ours, name));
  }
}

std::string Complaint(std::unique_ptr<TensorSource> theirs, const ModelConfig& model,
                      bool shares = true) {
  try {
    FromHuggingFaceNames(std::move(theirs), model, shares);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(HuggingFaceNames, WhatIsMissingUnknownOrOfAnotherShapeIsNamed) {
  const ModelConfig model = Model(kVersion10);
  const auto ours = ParametersOf(model);
  const auto changed = [&](const auto& change) {
    auto theirs = Stored(*ToHuggingFaceNames(*ours, model));
    change(*theirs);
    return Complaint(std::move(theirs), model);
  };
  EXPECT_EQ(changed([](Values&) {}), "");
  EXPECT_THAT(changed([](Values& v) { v.Remove("encoder.final_layer_norm.weight"); }),
              HasSubstr("missing (1): encoder.final_layer_norm.weight"));
  EXPECT_THAT(changed([](Values& v) { v.Add("classifier.weight", {2}, 0); }),
              HasSubstr("unknown (1): classifier.weight"));
  EXPECT_THAT(changed([](Values& v) {
                v.Add("shared.weight", {95, 24}, 0);
              }),
              HasSubstr("shared.weight is [95, 24] there, [96, 24] by config.json"));
  EXPECT_EQ(
      changed([](Values& v) {
        v.Add("decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight", {8, 3}, 0);
      }),
      "");
}

TEST(HuggingFaceNames, TheEmbeddingUnderItsOtherNames) {
  const ModelConfig tied = Model(kVersion10), untied = Model(kVersion11);
  const auto with = [&](const ModelConfig& model, const std::string& name, float first,
                        const std::string& without, bool shares) {
    auto theirs = Stored(*ToHuggingFaceNames(*ParametersOf(model), model));
    if (!without.empty()) theirs->Remove(without);
    if (!name.empty()) theirs->Add(name, {96, 24}, first);
    return Complaint(std::move(theirs), model, shares);
  };
  EXPECT_EQ(with(tied, "lm_head.weight", 0, "", true), "");
  EXPECT_THAT(with(tied, "lm_head.weight", 1, "", true), HasSubstr("tie_word_embeddings"));
  EXPECT_EQ(with(tied, "encoder.embed_tokens.weight", 0, "shared.weight", true), "");
  EXPECT_THAT(with(tied, "", 0, "shared.weight", true), HasSubstr("missing (1): shared.weight"));
  EXPECT_EQ(with(untied, "lm_head.weight", 1, "", false), "");
  EXPECT_EQ(with(untied, "", 0, "lm_head.weight", true), "");
  EXPECT_THAT(with(untied, "", 0, "lm_head.weight", false), HasSubstr("lm_head.weight"));
}

}  // namespace
}  // namespace syntra
