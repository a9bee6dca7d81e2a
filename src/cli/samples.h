// SPDX-License-Identifier: Apache-2.0
// Validation examples side by side with what a model makes of them.
#pragma once

#include <span>
#include <string>

#include "train/validation_samples.h"

namespace syntra {

struct SamplesForm {
  bool goes_on = false;  // the model goes on with a text; else it fills gaps
  bool raw = false;      // input, target and output, a line each
  int columns = 80;      // at most
};

// For models that fill gaps the text with its gaps, and for each gap the true span and the model's;
// for others the first half of a text, then the second half from the data and from the model.
std::string SamplesText(std::span<const ValidationSample> samples, const Tokenizer& tokenizer,
                        const SamplesForm& form);

}  // namespace syntra
