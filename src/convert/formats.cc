// SPDX-License-Identifier: Apache-2.0
#include "convert/formats.h"

#include "base/text.h"
#include "config/config.h"
#include "config/problem.h"

namespace syntra {
namespace {

constexpr int64_t kMaxTokenizerBytes = int64_t{256} << 20;

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
         "{} has no {}, the SentencePiece model; give it with syntra convert --tokenizer FILE (a "
         "tokenizer.json cannot take its place)",
         directory.string(), own);
  }
  const auto read = [](const Path& path) {
    return ReadWholeFile(path, kMaxTokenizerBytes, ExitCode::kData);
  };
  model->tokenizer = read(model->tokenizer_path);
  if (given.empty() || !Exists(directory / own) || read(directory / own) == model->tokenizer) {
    return;
  }
  // Its ids would mean other pieces than those that the model has learned.
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
  CheckFitsTrained(tokenizer, model->config.model().vocabulary_size());
  model->tokenizer_identity = identity;
  return tokenizer;
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
