// SPDX-License-Identifier: Apache-2.0
// This program's checkpoints. What is written has parameters and no optimizer state.
#include "base/error.h"
#include "base/file.h"
#include "checkpoint/layout.h"
#include "checkpoint/recover.h"
#include "checkpoint/save.h"
#include "config/config.h"
#include "config/print.h"
#include "convert/formats.h"
#include "core/buffer.h"

namespace syntra {
namespace {

bool Recognizes(const Path& path) {
  const Path directory = WithoutCheckpointFile(path);
  return Exists(directory / kManifestName) || HoldsCheckpoints(directory);
}

StoredModel Open(const Path& path, const Path& tokenizer) {
  Checkpoint checkpoint = OpenNewest(path);
  StoredModel model;
  model.step = checkpoint.info().step;
  model.run_id = checkpoint.info().run_id;
  model.config = ParseConfig(checkpoint.path().string(),
                             AttributeOf(checkpoint.path(), checkpoint.info(), kConfigAttribute),
                             {}, kForModel);
  // The first checkpoints hold none.
  if (tokenizer.empty() && checkpoint.HasFile(kTokenizerFile)) {
    model.tokenizer = checkpoint.ReadFile(kTokenizerFile).value();
    model.tokenizer_path = checkpoint.path() / kTokenizerFile;
  } else {
    ReadTokenizer(checkpoint.path(), kTokenizerFile, tokenizer, &model);
  }
  model.config.mutable_data()->clear_tokenizer();
  static_cast<StoredParameters&>(model) = ParametersOf(std::move(checkpoint));
  Complete(&model);
  return model;
}

void Write(StoredModel& model, const Path& directory, const SafetensorsOptions& options) {
  if (options.type != SafetensorsType::kF32) {
    Fail(ExitCode::kConfig, "checkpoints hold f32; leave --dtype out");
  }
  std::vector<TensorRecord> records;
  std::vector<Buffer> buffers;
  for (const auto& [name, type] : model.parameters->tensors()) {
    Buffer& values = buffers.emplace_back(type.bytes(), "a parameter");
    ReadFinite(model, name,
               {reinterpret_cast<float*>(values.data()), static_cast<size_t>(type.shape.size())});
    records.push_back({kParametersGroup + name, type, values.data()});
  }
  const CheckpointInfo info{.step = model.step,
                            .run_id = model.run_id,
                            .attributes = {{kConfigAttribute, MinimalConfigText(model.config)},
                                           {kTokenizerAttribute, model.tokenizer_identity},
                                           {kInitialAttribute, model.source}}};
  const FileRecord tokenizer{kTokenizerFile, model.tokenizer};
  // The folder gets another name when it is complete.
  SaveCheckpoint(directory / kCheckpointsFolder, info, records, {.log = false}, {&tokenizer, 1});
}

}  // namespace

const ModelFormat kSyntraFormat = {"syntra", kTokenizerFile, Recognizes, Open, Write};

}  // namespace syntra
