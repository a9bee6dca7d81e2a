// SPDX-License-Identifier: Apache-2.0
// Small SentencePiece models, made by SentencePiece's trainer when a test runs.
#pragma once

#include <string>

#include "base/file.h"

namespace syntra {

// A model of 200 pieces, trained on some documents of the sample corpus with the
// trainer's defaults and these options ("--pad_id=0 ..."). The trainer's own special pieces are
// <unk> 0, <s> 1 and </s> 2. Fails the test if the trainer does.
Path TrainedModel(const std::string& name, const std::string& options);

}  // namespace syntra
