// SPDX-License-Identifier: Apache-2.0
// Validation examples side by side with what a model makes of them.
#pragma once

#include <cstdint>
#include <string>

#include "data/validation_data.h"
#include "decode/batch_decoder.h"

namespace syntra {

// Which validation example is sample i of `samples`: spread evenly, so over different documents.
int64_t SampleIndex(int64_t i, int64_t samples, int64_t examples);

// Collective. `count` samples as text of at most `columns` columns: the text with its gaps, and for
// each gap what was there and what the model puts. `raw`: input, target and output, a line each.
std::string SamplesText(BatchDecoder& decoder, Communicator& ranks, const Tokenizer& tokenizer,
                        const ValidationData& data, int64_t count, bool raw, int columns,
                        const OnBatch& on_batch);

}  // namespace syntra
