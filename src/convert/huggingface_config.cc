// SPDX-License-Identifier: Apache-2.0
#include "convert/huggingface_config.h"

#include <algorithm>
#include <limits>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"
#include "config/print.h"
#include "configs/schema/kind_of.h"
#include "mixers/mixer.h"
#include "model/architecture.h"

namespace syntra {
namespace {

constexpr const char* kFile = "config.json";

// The expected value, for the error about a wrong one.
struct WrongValue {
  std::string expected;
};

int32_t Integer(const Json& value) {
  const int64_t number = AsInteger(value).value_or(0);
  if (number > 0 && number <= std::numeric_limits<int32_t>::max()) {
    return static_cast<int32_t>(number);
  }
  throw WrongValue{"a number from 1 to 2147483647"};
}

double Number(const Json& value) {
  if (!value.is_number()) throw WrongValue{"a number"};
  return value.get<double>();
}

bool Truth(const Json& value) {
  if (!value.is_boolean()) throw WrongValue{"true or false"};
  return value.get<bool>();
}

void Require(const Json& value, const Json& only) {
  if (value != only) throw WrongValue{JsonText(only)};
}

bool IsGated(const HuggingFaceConfig& config) {
  return config.model.feed_forward().activation() == FeedForwardConfig::GATED_GELU;
}

const char* ActivationName(const HuggingFaceConfig& config) {
  return IsGated(config) ? "gelu_new" : "relu";
}

void TakeActivation(const Json& value, HuggingFaceConfig& config) {
  FeedForwardConfig& feed_forward = *config.model.mutable_feed_forward();
  if (value == "relu") {
    feed_forward.set_activation(FeedForwardConfig::RELU);
  } else if (value == "gated-gelu") {
    feed_forward.set_activation(FeedForwardConfig::GATED_GELU);
  } else {
    throw WrongValue{"\"relu\" or \"gated-gelu\""};
  }
}

// transformers 5 says here what tie_word_embeddings said before: whether logits are scaled as T5
// v1.0 does.
void TakeOutputScale(const Json& value, HuggingFaceConfig& config) {
  const bool scaled = Truth(value);
  if (scaled && !config.shares_embeddings) throw WrongValue{"false with untied embeddings"};
  config.model.set_tied_embeddings(scaled);
}

void TakeDropout(const Json& value, HuggingFaceConfig& config) {
  ModelConfig& model = config.model;
  const double rate = Number(value);
  model.set_dropout(rate);
  model.mutable_mixer()->mutable_attention()->set_dropout(rate);
  model.mutable_cross_attention()->set_dropout(rate);
  if (rate > 0) model.set_dropout_noise(PER_ELEMENT);
}

// One field of config.json: the value where it is missing (null: nothing is taken), and the way to
// and from the model. Null from `give`: it is not written. Later rows may look at what earlier ones
// took.
struct Row {
  const char* name;
  Json missing;
  void (*take)(const Json& value, HuggingFaceConfig& config);
  Json (*give)(const HuggingFaceConfig& config);
};

using Field = const Json&;
using Given = const HuggingFaceConfig&;
using Taken = HuggingFaceConfig&;

// The values for missing fields are those of transformers' T5Config.
const std::vector<Row>& Rows() {
  static const std::vector<Row> rows = {
      {"model_type", "", [](Field v, Taken) { Require(v, "t5"); },
       [](Given) -> Json { return "t5"; }},
      {"is_encoder_decoder", true, [](Field v, Taken) { Require(v, true); },
       [](Given) -> Json { return true; }},
      {"d_model", 512, [](Field v, Taken c) { c.model.set_width(Integer(v)); },
       [](Given c) -> Json { return c.model.width(); }},
      {"d_kv", 64,
       [](Field v, Taken c) {
         c.model.mutable_mixer()->mutable_attention()->set_head_size(Integer(v));
         c.model.mutable_cross_attention()->set_head_size(Integer(v));
       },
       [](Given c) -> Json { return c.model.mixer().attention().head_size(); }},
      {"d_ff", 2048,
       [](Field v, Taken c) { c.model.mutable_feed_forward()->set_width(Integer(v)); },
       [](Given c) -> Json { return c.model.feed_forward().width(); }},
      {"num_layers", 6,
       [](Field v, Taken c) {
         c.model.set_encoder_layers(Integer(v));
         c.model.set_decoder_layers(Integer(v));
       },
       [](Given c) -> Json { return c.model.encoder_layers(); }},
      {"num_decoder_layers", nullptr,
       [](Field v, Taken c) { c.model.set_decoder_layers(Integer(v)); },
       [](Given c) -> Json { return c.model.decoder_layers(); }},
      {"num_heads", 8,
       [](Field v, Taken c) {
         c.model.mutable_mixer()->mutable_attention()->set_heads(Integer(v));
         c.model.mutable_cross_attention()->set_heads(Integer(v));
       },
       [](Given c) -> Json { return c.model.mixer().attention().heads(); }},
      {"relative_attention_num_buckets", 32,
       [](Field v, Taken c) { c.model.mutable_relative_bias()->set_buckets(Integer(v)); },
       [](Given c) -> Json { return c.model.relative_bias().buckets(); }},
      {"relative_attention_max_distance", 128,
       [](Field v, Taken c) { c.model.mutable_relative_bias()->set_max_distance(Integer(v)); },
       [](Given c) -> Json { return c.model.relative_bias().max_distance(); }},
      {"feed_forward_proj", "relu", TakeActivation,
       [](Given c) -> Json { return IsGated(c) ? "gated-gelu" : "relu"; }},
      {"is_gated_act", nullptr, [](Field v, Taken c) { Require(v, IsGated(c)); },
       [](Given c) -> Json { return IsGated(c); }},
      {"dense_act_fn", nullptr, [](Field v, Taken c) { Require(v, ActivationName(c)); },
       [](Given c) -> Json { return ActivationName(c); }},
      {"vocab_size", 32128, [](Field v, Taken c) { c.model.set_vocabulary_size(Integer(v)); },
       [](Given c) -> Json { return c.model.vocabulary_size(); }},
      {"tie_word_embeddings", true,
       [](Field v, Taken c) {
         c.shares_embeddings = Truth(v);
         c.model.set_tied_embeddings(c.shares_embeddings);
       },
       [](Given c) -> Json { return c.model.tied_embeddings(); }},
      {"scale_decoder_outputs", nullptr, TakeOutputScale, [](Given) -> Json { return nullptr; }},
      {"layer_norm_epsilon", 1e-6, [](Field v, Taken c) { c.model.set_norm_epsilon(Number(v)); },
       [](Given c) -> Json { return c.model.norm_epsilon(); }},
      {"dropout_rate", 0.1, TakeDropout, [](Given c) -> Json { return c.model.dropout(); }},
      {"initializer_factor", nullptr, [](Field v, Taken) { Number(v); },
       [](Given) -> Json { return 1.0; }},
      {"n_positions", nullptr, [](Field v, Taken c) { c.input_length = Integer(v); },
       [](Given c) -> Json { return c.input_length; }},
      {"pad_token_id", 0, [](Field v, Taken) { Require(v, 0); }, [](Given) -> Json { return 0; }},
      {"decoder_start_token_id", nullptr, [](Field v, Taken) { Require(v, 0); },
       [](Given) -> Json { return 0; }},
      {"eos_token_id", 1, [](Field v, Taken c) { c.eos_id = Integer(v); },
       [](Given c) -> Json { return c.eos_id; }},
      {"quantization_config", nullptr,
       [](Field, Taken) { throw WrongValue{"nothing: weights must not be quantized"}; },
       [](Given) -> Json { return nullptr; }},
      {"architectures", nullptr, [](Field, Taken) {},
       [](Given) -> Json { return Json::array({"T5ForConditionalGeneration"}); }},
      {"use_cache", nullptr, [](Field, Taken) {}, [](Given) -> Json { return true; }},
  };
  return rows;
}

// Other fields of published T5s, which do not affect the values of the model: its origin, the type
// in which it was stored, how transformers generates, heads that T5ForConditionalGeneration does
// not have.
constexpr std::string_view kHarmless[] = {
    "_attn_implementation",
    "_attn_implementation_autoset",
    "_commit_hash",
    "_name_or_path",
    "bos_token_id",
    "chunk_size_feed_forward",
    "classifier_dropout",
    "do_sample",
    "dtype",
    "early_stopping",
    "finetuning_task",
    "gradient_checkpointing",
    "id2label",
    "is_decoder",
    "label2id",
    "length_penalty",
    "max_length",
    "min_length",
    "no_repeat_ngram_size",
    "num_beams",
    "num_return_sequences",
    "output_attentions",
    "output_hidden_states",
    "output_past",
    "prefix",
    "problem_type",
    "repetition_penalty",
    "return_dict",
    "task_specific_params",
    "temperature",
    "tokenizer_class",
    "top_k",
    "top_p",
    "torch_dtype",
    "torchscript",
    "transformers_version",
    "use_bfloat16",
};

// A field that is null says nothing.
std::vector<std::string> UnknownFields(const Json& json) {
  std::vector<std::string> unknown;
  for (const auto& [name, value] : json.items()) {
    const bool known = value.is_null() || std::ranges::count(kHarmless, name) > 0 ||
                       std::ranges::count(Rows(), name, &Row::name) > 0;
    if (!known) unknown.push_back(Printable(name, 40));
  }
  return unknown;
}

void Canonicalise(MixerConfig& mixer) {
  AttentionConfig* attention = MutableAttention(&mixer);
  if (!attention) return;
  attention->clear_dropout();
  if (attention->term_size() == 1 && attention->term(0).has_dot_product() &&
      attention->term(0).name().empty()) {
    attention->clear_term();
  }
  if (attention->term_size() > 0) return;
  attention->clear_gate();
  attention->clear_initial_alpha();
  attention->clear_index_by();
}

void CheckHasOnlyDotProduct(const MixerConfig& mixer, const std::string& path) {
  if (const std::string kind = MixerKind(mixer); kind != "attention") {
    Fail(ExitCode::kConfig,
         "{} is a {}, which transformers' T5 does not have; use --to safetensors", path, kind);
  }
  for (const ScoreTerm& term : mixer.attention().term()) {
    if (term.has_dot_product()) continue;
    Fail(ExitCode::kConfig,
         "{} has a {} term: it is a Synthesizer, which transformers does not have; use --to "
         "safetensors",
         path, KindOf(term));
  }
}

}  // namespace

HuggingFaceConfig ParseHuggingFaceConfig(const std::string& text) {
  HuggingFaceConfig config;
  Json json;
  try {
    json = ParseJson(text);
  } catch (const Json::exception& error) {
    Fail(ExitCode::kCheckpoint, "{} is not JSON: {}", kFile, error.what());
  }
  if (!json.is_object()) Fail(ExitCode::kCheckpoint, "{} is not a JSON object", kFile);
  for (const Row& row : Rows()) {
    const auto found = json.find(row.name);
    const Json& value = found == json.end() || found->is_null() ? row.missing : *found;
    if (value.is_null()) continue;
    try {
      row.take(value, config);
    } catch (const WrongValue& wrong) {
      Fail(ExitCode::kCheckpoint, "{}: {} is {}, but must be {}", kFile, row.name,
           Printable(JsonText(value), 80), wrong.expected);
    }
  }
  config.unknown = UnknownFields(json);
  return config;
}

std::string HuggingFaceConfigText(const HuggingFaceConfig& config) {
  Json json = Json::object();
  for (const Row& row : Rows()) {
    if (Json value = row.give(config); !value.is_null()) json[row.name] = std::move(value);
  }
  return JsonText(json, 2) + "\n";
}

ModelConfig CanonicalModel(const ModelConfig& model) {
  ModelConfig canonical = WithNamedSublayers(ShortForm(model));
  if (!canonical.has_decoder_mixer()) *canonical.mutable_decoder_mixer() = canonical.mixer();
  Canonicalise(*canonical.mutable_mixer());
  Canonicalise(*canonical.mutable_decoder_mixer());
  for (LayerConfig* layer : ListedLayers(&canonical)) {
    Canonicalise(*layer->mutable_mixer());
    layer->mutable_feed_forward()->clear_initialization();
  }
  canonical.mutable_cross_attention()->clear_dropout();
  canonical.mutable_feed_forward()->clear_initialization();
  canonical.clear_dropout();
  canonical.clear_dropout_noise();
  return canonical;
}

void CheckIsHuggingFaceModel(const ModelConfig& model) {
  if (model.architecture() != ModelConfig::ENCODER_DECODER) {
    Fail(ExitCode::kConfig,
         "transformers' T5 is an encoder-decoder, and this model is {}; use --to safetensors",
         NameOf(model.architecture()));
  }
  for (const Side side : ArchitectureOf(model).sides()) {
    for (const LayerGroup& group : LayersOf(model, side)) {
      CheckHasOnlyDotProduct(group.mixer, "model." + group.mixer_path);
    }
  }
  // The model that is read back from config.json is the one that config.json can describe.
  Config ours, theirs;
  *ours.mutable_model() = CanonicalModel(model);
  *theirs.mutable_model() = CanonicalModel(
      ParseHuggingFaceConfig(HuggingFaceConfigText({.model = ShortForm(model)})).model);
  const std::vector<std::string> differences = ConfigDifferences(theirs, ours);
  if (differences.empty()) return;
  Fail(ExitCode::kConfig,
       "transformers' T5 cannot have this model's shape; use --to safetensors. Where a T5 must "
       "have the first value, it has the second:\n  {}",
       Join(differences, "\n  "));
}

}  // namespace syntra
