// SPDX-License-Identifier: Apache-2.0
// The words and bytes of targets as text, by which models with different tokenizers are compared.
#pragma once

#include <cstdint>

#include "data/batch.h"
#include "data/tokenizer.h"
#include "data/validation_data.h"

namespace syntra {

struct TextCounts {
  int64_t words = 0;  // that begin in the targets; the end of a text counts as one
  int64_t bytes = 0;  // of UTF-8; three for characters in a row for which there is no piece
};

// Adds what the targets of all rows of `batch`, a part of `data`, are as text. A word that two rows
// share is counted once, where it begins, and so is the space between two rows.
void CountTexts(const Batch& batch, const ValidationData& data, const Tokenizer& tokenizer,
                TextCounts* counts);

}  // namespace syntra
