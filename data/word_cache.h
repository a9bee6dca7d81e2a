// SPDX-License-Identifier: Apache-2.0
// Encodes text with a unigram model and caches the ids of the words that it has seen.
//
// If no piece reaches across a space, the best segmentation of a text is that of its words, one
// after the other, up to rounding: scores are summed in float over the whole text (segmenter.h),
// and if two segmentations of a word have almost the same score, the sum of the text before it
// decides. The cache therefore stores the margin between the best and the second best segmentation
// of each word. If rounding errors at the current sum could exceed the margin, the word is
// segmented again from that sum.
//
// As a check, each new word of up to 4 KiB is also encoded by SentencePiece.
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
  // Null if the model is not a unigram model. If its pieces or rules may reach across a space, or
  // it has user-defined symbols, each text counts as one word and nothing is cached. `processor`
  // must outlive the cache.
  static std::unique_ptr<WordCache> MakeIfUnigram(
      const sentencepiece::SentencePieceProcessor& processor, const tokenizer::ModelFile& model);

  // Sets `*ids` to the ids of `text`. False if SentencePiece disagrees about a word: the cache must
  // then not be used. Besides the ids it takes about 6 bytes of memory for each byte of the longest
  // word.
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

  // The word of `text` at `*at`; moves `*at` past the spaces after it.
  std::string_view NextWord(std::string_view text, size_t* at) const;
  bool Append(std::string_view word, std::vector<int32_t>* ids);
  const Word* Find(std::string_view word, uint64_t hash) const;
  // Adds a word to the cache. normal_ must hold its normal form.
  void Remember(std::string_view word, uint64_t hash);
  // Whether SentencePiece gives the word the same ids, or others with the same score: versions
  // after 0.1.97 break ties differently.
  bool AgreesWithSentencePiece(std::string_view word);
  bool IsSafe(double margin, int32_t characters) const;
  void Grow();

  const sentencepiece::SentencePieceProcessor& processor_;
  std::shared_ptr<const Normalizer> normalizer_;
  Segmenter segmenter_;
  bool parts_words_ = false;
  bool is_space_[256] = {};      // bytes at which words may be separated
  float sum_ = 0;                // the score of the text so far
  std::vector<uint32_t> slots_;  // hash table with open addressing: index into words_ plus 1
  std::vector<Word> words_;
  std::string keys_;
  std::vector<int32_t> ids_;
  std::vector<float> scores_;
  Segmentation kept_;
  std::vector<int32_t> found_;
  std::string normal_;
};

}  // namespace syntra
