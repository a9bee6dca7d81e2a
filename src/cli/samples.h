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

struct SamplesForm {
  bool goes_on = false;  // the model goes on with a text; else it fills gaps
  bool raw = false;      // input, target and output, a line each
  int columns = 80;      // at most
};

// Collective. `count` samples as text: the text with its gaps, and for each gap what was there and
// what the model puts; or the first half of a text, and the second by the data and by the model.
std::string SamplesText(BatchDecoder& decoder, Communicator& ranks, const Tokenizer& tokenizer,
                        const ValidationData& data, int64_t count, const SamplesForm& form,
                        const OnBatch& on_batch);

}  // namespace syntra
