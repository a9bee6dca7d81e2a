// SPDX-License-Identifier: Apache-2.0
// Encodes text with a unigram model and caches the ids of the words that it has seen.
//
// If no piece reaches across a space, the best segmentation of a text is that of its words, one
// after the other, up to rounding: scores are summed in float over the whole text (segmenter.h),
// and if two segmentations of a word have almost the same score, the sum of the text before it
// decides. The cache therefore stores, of each word, the largest sum at which rounding errors are
// smaller than the margin between the best and the second best segmentation. Where the sum may be
// larger, it is found exactly, from the ids so far, and the word is segmented again from it.
//
// As a check, SentencePiece encodes the first thousand new words too, and later a few of them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "data/normalizer.h"
#include "data/segmenter.h"
#include "data/word_table.h"

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
  // Words that are looked for ahead of their turn.
  struct Ahead {
    WordKey key;
    std::string_view text;
  };

  WordCache(const sentencepiece::SentencePieceProcessor& processor,
            const tokenizer::ModelFile& model);

  // The key of the word of `text` at `*at`, if it is short and between single spaces and printable
  // ASCII; moves `*at` past the space. Else an empty key.
  WordKey NextShortWord(std::string_view text, size_t* at) const;
  // The word of `text` at `*at`; moves `*at` past the spaces after it.
  std::string_view NextWord(std::string_view text, size_t* at) const;
  // Appends the ids of short words at `*at` and moves it after them.
  bool AppendShortWords(std::string_view text, size_t* at, std::vector<int32_t>* ids);
  bool Append(std::string_view word, const WordKey& key, std::vector<int32_t>* ids);
  // Appends a cached word's ids, if the sum before it allows.
  bool AppendCached(const Word& word, std::vector<int32_t>* ids);
  // `cached`: the word has ids for a smaller sum.
  bool AppendNew(std::string_view word, const WordKey& key, bool cached, std::vector<int32_t>* ids);
  // Adds a word to the cache, if it fits. normal_ must hold its normal form.
  const Word* Remember(const WordKey& key);
  float LargestSum(const Segmentation& word) const;
  // Brings sum_ up to date with the ids so far.
  void FindSum(const std::vector<int32_t>& ids);
  bool IsToBeChecked(std::string_view word);
  // Whether SentencePiece gives the word the same ids, or others with the same score: versions
  // after 0.1.97 break ties differently.
  bool AgreesWithSentencePiece(std::string_view word);

  const sentencepiece::SentencePieceProcessor& processor_;
  std::shared_ptr<const Normalizer> normalizer_;
  Segmenter segmenter_;
  bool parts_words_ = false;
  bool is_space_[256] = {};  // bytes at which words may be separated
  WordTable words_;
  uint64_t new_words_ = 0;
  // The state of the text being encoded:
  size_t id_count_ = 0;  // the others of the vector are room
  float sum_ = 0;        // the score of its first summed_ ids
  size_t summed_ = 0;
  double magnitude_ = 0;  // at least that of the sum of all ids
  Segmentation kept_;
  std::vector<int32_t> found_;
  std::string normal_;
};

}  // namespace syntra
