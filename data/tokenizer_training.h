// SPDX-License-Identifier: Apache-2.0
// Trains SentencePiece models.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "data/bad_record.h"

namespace syntra {

// The text that a tokenizer is trained on.
struct TokenizerText {
  std::string source;   // names the text in errors
  std::string lines{};  // every document, and a newline after each
  int64_t documents = 0;

  void Add(std::string_view document);
};

// Corpus files, in any format of README.md.
struct TokenizerCorpus {
  std::vector<std::string> patterns;
  std::string text_field = "text";
  BadRecordPolicy on_bad_record;
  // How much text to read: every file gives an equal part, from its beginning; what one does not
  // have, the next ones may give. Training takes up to 25 times as much memory.
  int64_t most_bytes = int64_t{100} << 20;
};
// Throws Error(kData) if the files are too bad for the policy.
TokenizerText ReadTokenizerText(const TokenizerCorpus& corpus);

// The settings of SentencePiece's trainer. The defaults are those of T5's model.
struct TokenizerTraining {
  std::string kind = "unigram";  // or "bpe"
  int32_t pieces = 32000;        // with the special ones
  std::string normalization = "nmt_nfkc";
  double character_coverage = 0.9995;  // the other, rarest characters are unknown
  bool byte_fallback = false;          // such characters become pieces for their bytes instead
};

// Returns the content of a model file. Padding, the end of a sentence and the unknown piece are
// pieces 0, 1 and 2, as in T5's model. The result depends on the text, the settings and the version
// of SentencePiece alone. Throws Error(kData) if there is no text; Error(kConfig) if the trainer
// cannot make such a model of the text: most often there are too many pieces for it.
std::string TrainTokenizer(const TokenizerTraining& training, const TokenizerText& text);

}  // namespace syntra
