// SPDX-License-Identifier: Apache-2.0
#include "convert/formats.h"

#include "base/text.h"
#include "config/config.h"
#include "config/print.h"
#include "config/problem.h"
#include "convert/huggingface_config.h"

namespace syntra {
namespace {

constexpr int64_t kMaxTokenizerBytes = int64_t{256} << 20;

// Models may have rows without a token: T5's 32,128 for 32,100. That is padding; a tokenizer that
// leaves more of them than padding does is hardly the one of which the rows were learned.
void CheckLeavesPaddingAlone(const Tokenizer& tokenizer, int32_t rows) {
  if (rows <= VocabularySizeFor(tokenizer)) return;
  Fail(ExitCode::kData,
       "the tokenizer {} has {}, but the model has rows for {}, more than padding explains: it was "
       "hardly trained with this one. Give its own; if this is it, put it beside the model",
       tokenizer.path().string(), TokensText(tokenizer), rows);
}

}  // namespace

std::span<const ModelFormat> ModelFormats() {
  static const ModelFormat rows[] = {kSyntraFormat, kHuggingFaceFormat, kSafetensorsFormat};
  return rows;
}

const ModelFormat* FindFormat(const Path& path) {
  for (const ModelFormat& format : ModelFormats()) {
    if (format.recognizes(path)) return &format;
  }
  return nullptr;
}

void ReadTokenizer(const Path& directory, const char* own, const Path& given, StoredModel* model) {
  model->tokenizer_path = given.empty() ? directory / own : given;
  if (given.empty() && !Exists(model->tokenizer_path)) {
    Fail(ExitCode::kData,
         "{} has no {}, the SentencePiece model; put it there, or name it: in data.tokenizer for a "
         "run, with --tokenizer FILE for syntra convert (a tokenizer.json cannot take its place)",
         directory.string(), own);
  }
  if (!given.empty()) RequireExists(given);
  model->brings_tokenizer = Exists(directory / own);
  const auto read = [](const Path& path) {
    return ReadWholeFile(path, kMaxTokenizerBytes, ExitCode::kData);
  };
  model->tokenizer = read(model->tokenizer_path);
  if (given.empty() || !model->brings_tokenizer || read(directory / own) == model->tokenizer) {
    return;
  }
  // With another tokenizer ids would mean other pieces than those that the model has learned.
  Fail(ExitCode::kData,
       "the tokenizer {} is another than the model's own, {}; leave --tokenizer out",
       given.string(), (directory / own).string());
}

Tokenizer Complete(StoredModel* model) {
  const ErrorContext context([&] { return "reading " + model->path.string(); });
  try {
    ValidateConfig(model->config, kForModel);
  } catch (const ConfigError& error) {
    std::string text = "its configuration is not possible here:";
    for (const Problem& problem : error.problems()) text += "\n  " + problem.message;
    Fail(ExitCode::kCheckpoint, "{}", text);
  }
  Tokenizer tokenizer(model->tokenizer_path, model->tokenizer, model->config.data().extra_ids());
  const std::string identity = tokenizer.identity();
  if (!model->tokenizer_identity.empty() && identity != model->tokenizer_identity) {
    Fail(ExitCode::kData,
         "the tokenizer (XXH3-128 {}) is not the one that the model was trained with (XXH3-128 {})",
         identity, Printable(model->tokenizer_identity));
  }
  const int32_t rows = model->config.model().vocabulary_size();
  CheckFitsTrained(tokenizer, rows);
  if (model->tokenizer_identity.empty() && !model->brings_tokenizer) {
    CheckLeavesPaddingAlone(tokenizer, rows);
  }
  model->tokenizer_identity = identity;
  return tokenizer;
}

bool IsSameModel(const StoredModel& a, const StoredModel& b) {
  const auto text = [](const StoredModel& model) {
    Config config;
    *config.mutable_model() = CanonicalModel(model.config.model());
    return MinimalConfigText(config);
  };
  return text(a) == text(b);
}

void WriteTensors(TensorSource& tensors, const Path& directory, const SafetensorsOptions& options) {
  SafetensorsWriter writer(directory, tensors.tensors(), options);
  std::vector<float> values;
  for (const std::string& name : writer.order()) {
    values.resize(tensors.tensors().find(name)->second.shape.size());
    tensors.Read(name, values);
    writer.Write(name, values);
  }
  writer.Finish();
}

}  // namespace syntra
