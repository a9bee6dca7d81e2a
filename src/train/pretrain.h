// SPDX-License-Identifier: Apache-2.0
// Pretraining: from corpora to a trained model, judged by its log-perplexity on the validation
// split.
#pragma once

#include "configs/schema/config.pb.h"
#include "train/trainer.h"

namespace syntra {

// As Train (train/trainer.h), for pretraining.
RunOutcome Pretrain(const Config& config, const RankContext& rank);

}  // namespace syntra
