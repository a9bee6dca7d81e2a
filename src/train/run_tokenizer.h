// SPDX-License-Identifier: Apache-2.0
// The tokenizer of a training run.
#pragma once

#include "configs/schema/config.pb.h"
#include "data/tokenizer.h"
#include "train/initial.h"

namespace syntra {

// Opens the SentencePiece model that data.tokenizer names. If it names none, opens that of the
// newest checkpoint in the run directory, since checkpoints hold their tokenizer; if there are no
// checkpoints, that of the newest checkpoint of checkpoint.initial. `opened` is the model of
// checkpoint.initial, if it has been opened. Throws Error(kConfig) if none of them has a tokenizer,
// and as Tokenizer does.
Tokenizer OpenTokenizer(const Config& config,
                        const std::optional<InitialModel>& opened = std::nullopt);

}  // namespace syntra
