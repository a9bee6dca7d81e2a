// SPDX-License-Identifier: Apache-2.0
// The ids of a text in a unigram model, with a memory of the words seen.
//
// Where pieces never reach over a space, the best segmentation of a text is that of its words, one
// after the other. What ties words together is rounding: scores are summed in float over the whole
// text (segmenter.h), and where two segmentations of a word score (almost) the same, the sum so far
// decides between them. So each word is kept with the margin of its best segmentation; where the
// margin does not exceed what rounding can do at the present sum, the word is segmented anew from
// that sum.
//
// SentencePiece itself serves as a check: each new word that is not very long is given to it too.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "data/normalizer.h"
#include "data/segmenter.h"

namespace sentencepiece {
class SentencePieceProcessor;
}

namespace syntra {

class WordCache {
 public:
  // Null if the model is not a unigram model. Models whose pieces or rules may reach over a space,
  // or that have user-defined symbols, are served too, but each text is one word to them and not
  // remembered. `processor` must outlive the cache.
  static std::unique_ptr<WordCache> MakeIfUnigram(
      const sentencepiece::SentencePieceProcessor& processor, const tokenizer::ModelFile& model);

  // False if a word came out otherwise than SentencePiece has it, so that the cache must not be
  // used. A text without spaces takes some 6 bytes of memory a byte, besides the ids.
  bool Encode(std::string_view text, std::vector<int32_t>* ids);

 private:
  struct Word {
    uint64_t hash = 0;
    uint64_t key_begin = 0;
    uint32_t key_size = 0;
    uint32_t id_begin = 0, id_count = 0;
    uint32_t score_begin = 0, score_count = 0;
    float margin = 0;
    int32_t characters = 0;
  };

  WordCache(const sentencepiece::SentencePieceProcessor& processor,
            const tokenizer::ModelFile& model);

  // The text up to the next place where words may be parted; moves `at` behind the spaces there.
  std::string_view NextWord(std::string_view text, size_t* at) const;
  bool Append(std::string_view word, std::vector<int32_t>* ids);
  const Word* Find(std::string_view word, uint64_t hash) const;
  // The word's normal form is in normal_.
  void Remember(std::string_view word, uint64_t hash);
  // Whether SentencePiece gives the word the ids that it has here, or others of the same score:
  // later versions than 0.1.97 decide ties otherwise.
  bool AgreesWithSentencePiece(std::string_view word);
  bool IsSafe(double margin, int32_t characters) const;
  void Grow();

  const sentencepiece::SentencePieceProcessor& processor_;
  std::shared_ptr<const Normalizer> normalizer_;
  Segmenter segmenter_;
  bool parts_words_ = false;
  bool is_space_[256] = {};      // where words may be parted
  float sum_ = 0;                // the running score of the text
  std::vector<uint32_t> slots_;  // open addressing: index into words_ plus 1
  std::vector<Word> words_;
  std::string keys_;
  std::vector<int32_t> ids_;
  std::vector<float> scores_;
  Segmentation kept_;
  std::vector<int32_t> found_;
  std::string normal_;
};

}  // namespace syntra
