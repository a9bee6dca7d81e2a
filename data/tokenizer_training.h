// SPDX-License-Identifier: Apache-2.0
// Trains SentencePiece models on corpora.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/bad_record.h"

namespace syntra {

struct TokenizerTraining {
  std::vector<std::string> patterns;  // of corpus files, in any format of README.md
  std::string text_field = "text";
  BadRecordPolicy on_bad_record;
  // How much text to read: every file gives an equal part, from its beginning; what one does not
  // have, the next ones may give. Memory grows with it, to about 25 times as much.
  int64_t most_text_bytes = int64_t{100} << 20;

  // The settings of SentencePiece's trainer. The defaults are those of T5's model.
  std::string kind = "unigram";  // or "bpe"
  int32_t pieces = 32000;        // with the special ones
  std::string normalization = "nmt_nfkc";
  double character_coverage = 0.9995;  // the other, rarest characters are unknown
  bool byte_fallback = false;          // such characters become pieces for their bytes instead
};

struct TrainedTokenizer {
  std::string model;  // the content of a model file
  int64_t documents = 0, text_bytes = 0;
};

// Padding, the end of a sentence and the unknown piece are pieces 0, 1 and 2, as in T5's model. The
// result depends on the texts, the settings and the version of SentencePiece alone. Throws
// Error(kData) if the files have no text, or are too bad for the policy; Error(kConfig) if the
// trainer cannot make such a model of the text: most often there are too many pieces for it.
TrainedTokenizer TrainTokenizer(const TokenizerTraining& training);

}  // namespace syntra
