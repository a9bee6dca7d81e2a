// SPDX-License-Identifier: Apache-2.0
// transformers' T5 and FLAN-T5: config.json, model.safetensors, spiece.model.
#include <limits>

#include "base/error.h"
#include "base/json.h"
#include "base/log.h"
#include "base/text.h"
#include "convert/formats.h"
#include "convert/huggingface_config.h"
#include "convert/huggingface_names.h"
#include "model/layers.h"

namespace syntra {
namespace {

constexpr const char* kConfigFile = "config.json";
constexpr const char* kTokenizerModel = "spiece.model";
constexpr const char* kTokenizerConfig = "tokenizer_config.json";
constexpr const char* kSpecialTokens = "special_tokens_map.json";
constexpr const char* kGenerationConfig = "generation_config.json";
constexpr int64_t kMaxJsonBytes = 256 << 10;
// Where every T5 has them; transformers 5 takes no others.
constexpr int32_t kPad = 0, kEos = 1, kUnknown = 2;
constexpr int32_t kDefaultExtraIds = 100;
constexpr int64_t kMostExtraIds = 10000;  // of data.extra_ids, which must be 1 at least

bool Recognizes(const Path& directory) { return Exists(directory / kConfigFile); }

// How many sentinels T5Tokenizer would add.
int32_t ExtraIdsOf(const Path& directory) {
  const Path path = directory / kTokenizerConfig;
  if (!Exists(path)) return kDefaultExtraIds;
  try {
    const Json json = ParseJson(ReadWholeFile(path, kMaxJsonBytes, ExitCode::kData));
    const int64_t count = IntegerOf(json.value("extra_ids", Json(kDefaultExtraIds)));
    if (count >= 1 && count <= kMostExtraIds) return static_cast<int32_t>(count);
    Fail(ExitCode::kData, "{}: extra_ids is {}; this program takes T5s with 1 to {} sentinels",
         path.string(), count, kMostExtraIds);
  } catch (const Json::exception& error) {
    Fail(ExitCode::kData, "{} cannot be read: {}", path.string(), error.what());
  }
}

void CheckTokenIds(const Tokenizer& tokenizer, int32_t eos_id) {
  if (tokenizer.first_piece_id() != 0) {
    Fail(ExitCode::kData,
         "piece 0 of {} is no control piece, so text can give the id 0 that config.json has for "
         "padding; this program cannot tell the two apart",
         tokenizer.path().string());
  }
  if (tokenizer.eos_id() != eos_id) {
    Fail(ExitCode::kData, "eos_token_id is {} in {}, but {} in {}", eos_id, kConfigFile,
         tokenizer.eos_id(), tokenizer.path().string());
  }
}

void WarnOfUnknownFields(const HuggingFaceConfig& config, const Path& directory) {
  if (config.unknown.empty()) return;
  Log().warn(
      "{}: not known here and left out: {}. If one of them changes what the model computes, "
      "it is another model here",
      (directory / kConfigFile).string(), Join(config.unknown, ", "));
}

// An embedding has an even number of rows here. (The largest number of all is refused later.)
int32_t EvenVocabulary(int32_t rows) {
  return rows == std::numeric_limits<int32_t>::max() ? rows : rows + rows % 2;
}

// `rows`: vocab_size of config.json.
std::unique_ptr<TensorSource> OpenTensors(const Path& directory, int32_t rows) {
  auto tensors = std::make_unique<SafetensorsSource>(directory);
  if (rows == EvenVocabulary(rows)) return tensors;
  Log().info("vocab_size {} is odd; here it is {}, with the row of padding once more", rows,
             EvenVocabulary(rows));
  return WithAnotherToken(std::move(tensors), rows);
}

StoredModel Open(const Path& directory, const Path& tokenizer) {
  StoredModel model;
  model.path = directory;
  model.source = std::filesystem::absolute(directory).lexically_normal().string();
  const ErrorContext context([&] { return "reading the T5 in " + model.source; });
  HuggingFaceConfig config = ParseHuggingFaceConfig(
      ReadWholeFile(directory / kConfigFile, kMaxJsonBytes, ExitCode::kCheckpoint));
  WarnOfUnknownFields(config, directory);
  const int32_t rows = config.model.vocabulary_size();
  config.model.set_vocabulary_size(EvenVocabulary(rows));
  *model.config.mutable_model() = config.model;
  model.config.mutable_data()->set_input_length(config.input_length);
  model.config.mutable_data()->set_extra_ids(ExtraIdsOf(directory));
  ReadTokenizer(directory, kTokenizerModel, tokenizer, &model);
  const Tokenizer own = Complete(&model);
  CheckFitsTrained(own, rows);
  CheckTokenIds(own, config.eos_id);
  model.parameters =
      FromHuggingFaceNames(OpenTensors(directory, rows), config.model, config.shares_embeddings);
  return model;
}

// T5Tokenizer counts as SentencePiece does and knows no shift; transformers 5 also has the numbers
// of the special pieces built in.
void CheckIsT5Tokenizer(const Tokenizer& tokenizer) {
  const bool fits = tokenizer.first_piece_id() == 0 && tokenizer.own_pad_id() == kPad &&
                    tokenizer.eos_id() == kEos && tokenizer.unknown_id() == kUnknown &&
                    tokenizer.PieceOf(kEos) == "</s>";
  if (fits) return;
  Fail(ExitCode::kData,
       "the model's tokenizer is not numbered as T5's: <pad> 0, </s> 1, <unk> 2; ids would mean "
       "other pieces in transformers. Use --to safetensors, or train with a SentencePiece model "
       "made with --pad_id=0 --eos_id=1 --unk_id=2 --bos_id=-1");
}

void WriteTokenizer(const StoredModel& model, const Path& directory) {
  const DataConfig& data = model.config.data();
  const Tokenizer tokenizer("tokenizer", model.tokenizer, data.extra_ids());
  CheckIsT5Tokenizer(tokenizer);
  Json special = {{"eos_token", tokenizer.PieceOf(kEos)},
                  {"unk_token", tokenizer.PieceOf(kUnknown)},
                  {"pad_token", tokenizer.PieceOf(kPad)}};
  Json sentinels = Json::array();
  for (int32_t k = 0; k < data.extra_ids(); ++k) {
    sentinels.push_back(tokenizer.PieceOf(tokenizer.SentinelId(k)));
  }
  special["additional_special_tokens"] = sentinels;
  Json config = special;
  config["tokenizer_class"] = "T5Tokenizer";
  config["extra_ids"] = data.extra_ids();
  config["model_max_length"] = data.input_length();
  ReplaceFileDurably(directory / kTokenizerModel, model.tokenizer);
  ReplaceFileDurably(directory / kSpecialTokens, JsonText(special, 2) + "\n");
  ReplaceFileDurably(directory / kTokenizerConfig, JsonText(config, 2) + "\n");
}

// config.json has one rate for all, which only training reads.
void NoteDropout(const ModelConfig& model) {
  const double rate = model.dropout();
  const AttentionConfig& decoder =
      (model.has_decoder_mixer() ? model.decoder_mixer() : model.mixer()).attention();
  if (model.mixer().attention().dropout() == rate && decoder.dropout() == rate &&
      model.cross_attention().dropout() == rate) {
    return;
  }
  Log().warn(
      "dropout_rate of config.json is model.dropout, {}; attention has other rates, which are lost",
      rate);
}

void Write(StoredModel& model, const Path& directory, const SafetensorsOptions& options) {
  CheckIsHuggingFaceModel(model.config.model());
  const ModelConfig config = ShortForm(model.config.model());
  NoteDropout(config);
  WriteTokenizer(model, directory);
  ReplaceFileDurably(
      directory / kConfigFile,
      HuggingFaceConfigText(
          {.model = config, .input_length = model.config.data().input_length(), .eos_id = kEos}));
  const Json generation = {
      {"decoder_start_token_id", kPad}, {"eos_token_id", kEos}, {"pad_token_id", kPad}};
  ReplaceFileDurably(directory / kGenerationConfig, JsonText(generation, 2) + "\n");
  WriteTensors(*ToHuggingFaceNames(*model.parameters, config), directory, options);
}

}  // namespace

const ModelFormat kHuggingFaceFormat = {"huggingface", kTokenizerModel, Recognizes, Open, Write};

}  // namespace syntra
