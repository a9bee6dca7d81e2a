// SPDX-License-Identifier: Apache-2.0
// Converts models from one format to another.
#pragma once

#include "convert/formats.h"

namespace syntra {

struct Conversion {
  std::string from, to;    // names of formats
  std::string source;      // what was read, for people
  int64_t parameters = 0;  // values
  int64_t tensors = 0;     // of the model
};

// Reads the model at `input`, or the mean of `average` checkpoints (OpenAverage), and writes it to
// `output`: a directory that is written beside it then takes its place. `output` must be empty or
// not exist, and be no symbolic link and not the working directory. The result is opened again and
// compared with the source: every parameter bit for bit (rounded as `options` say), the model's
// configuration and the tokenizer. Only then does it get its name, so `output` is either complete
// or absent. Throws Error(kConfig) if `output` is in use or the format has no such model,
// Error(kCheckpoint) and Error(kData) as ModelFormat::open.
Conversion Convert(const Path& input, const Path& output, const ModelFormat& to,
                   const SafetensorsOptions& options = {}, const Path& tokenizer = {},
                   int average = 1);

}  // namespace syntra
