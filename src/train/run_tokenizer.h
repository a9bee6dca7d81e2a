// SPDX-License-Identifier: Apache-2.0
// The tokenizer of a configuration that trains.
#pragma once

#include "configs/schema/config.pb.h"
#include "data/tokenizer.h"
#include "train/initial.h"

namespace syntra {

// The SentencePiece model that data.tokenizer names. Where it names none, the one in the newest
// checkpoint of the run directory or, if that has no checkpoints, in the newest of
// checkpoint.initial: checkpoints hold their tokenizer. `initial` is what that is, if it has been
// opened. Throws Error(kConfig) if none of them has one, and as Tokenizer.
Tokenizer OpenTokenizer(const Config& config,
                        const std::optional<InitialModel>& initial = std::nullopt);

}  // namespace syntra
