// SPDX-License-Identifier: Apache-2.0
// Small SentencePiece models, which SentencePiece's trainer makes when a test runs.
#pragma once

#include <string>
#include <vector>

#include "base/file.h"

namespace syntra {

// The first documents of the sample corpus, which the models are trained on.
std::vector<std::string> TrainingDocuments();

// A model of 200 pieces, trained on these documents with the trainer's defaults and these options
// ("--pad_id=0 ..."). By default the special pieces are <unk> 0, <s> 1 and </s> 2. If the trainer
// fails, the test fails.
Path TrainedModel(const std::string& name, const std::string& options);

}  // namespace syntra
