// SPDX-License-Identifier: Apache-2.0
// Validation examples as requests to a model, with their targets and the model's outputs.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "data/validation_data.h"
#include "decode/batch_decoder.h"

namespace syntra {

struct ValidationSample {
  int64_t example = 0;  // the number of the example
  // A text with gaps, which `target` fills; or the first half of a text, of which `target` is the
  // second half.
  DecodeRequest request;
  std::vector<int32_t> target, output;
};

// Which validation example is sample i of `samples`: spread evenly, so over different documents.
int64_t SampleIndex(int64_t i, int64_t samples, int64_t examples);

// `count` samples, or as many as there are examples, without outputs. `goes_on`: the model goes on
// with texts; else it fills gaps.
std::vector<ValidationSample> ReadSamples(const ValidationData& data, const Tokenizer& tokenizer,
                                          int64_t count, bool goes_on);

// Fills in the model's outputs. Collective.
void AnswerSamples(std::span<ValidationSample> samples, BatchDecoder& decoder, Communicator& ranks,
                   const OnBatch& on_batch = {});

// The text of all the ids, even where documents end inside.
std::string SampleText(const Tokenizer& tokenizer, std::vector<int32_t> ids);

}  // namespace syntra
