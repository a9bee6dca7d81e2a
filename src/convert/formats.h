// SPDX-License-Identifier: Apache-2.0
// The formats that models are read from and written in, one row each.
#pragma once

#include <span>

#include "convert/safetensors.h"
#include "convert/stored_model.h"
#include "data/tokenizer.h"

namespace syntra {

struct ModelFormat {
  const char* name;            // of --to
  const char* tokenizer_file;  // that a directory may have
  bool (*recognizes)(const Path& directory);
  // `tokenizer`: the SentencePiece model of a directory that has none; "": the directory's. Throws
  // Error(kCheckpoint) for what is not sound, Error(kData) for the tokenizer.
  StoredModel (*open)(const Path& directory, const Path& tokenizer);
  // Writes the model into an empty directory, and syncs every file. Throws Error(kConfig) if the
  // format cannot represent the model.
  void (*write)(StoredModel& model, const Path& directory, const SafetensorsOptions& options);
};

std::span<const ModelFormat> ModelFormats();

// The format of the model at `path`; nullptr: no known format.
const ModelFormat* FindFormat(const Path& path);

// The rows, each in its file. `syntra`: a checkpoint, or a directory with some.
extern const ModelFormat kSyntraFormat;
// transformers' T5: config.json, model.safetensors and spiece.model.
extern const ModelFormat kHuggingFaceFormat;
// Any model: model.safetensors under this program's names, model.json and tokenizer.model.
extern const ModelFormat kSafetensorsFormat;

// Sets the model's tokenizer to the one in the file `given` or, if that is empty, in the
// directory's file `own`. Throws Error(kData) if there is none, or if both are there and differ.
void ReadTokenizer(const Path& directory, const char* own, const Path& given, StoredModel* model);

// Checks the model's configuration against the rules (Error(kCheckpoint)), and its tokenizer
// against the configuration and against `tokenizer_identity` or, where that is not known, against
// the number of rows. Sets the identity, and returns the tokenizer.
Tokenizer Complete(StoredModel* model);

// Whether the two configurations are of models that compute the same (CanonicalModel).
bool IsSameModel(const StoredModel& a, const StoredModel& b);

// Writes all tensors of a source.
void WriteTensors(TensorSource& tensors, const Path& directory, const SafetensorsOptions& options);

}  // namespace syntra
