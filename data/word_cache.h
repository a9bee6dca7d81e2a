// SPDX-License-Identifier: Apache-2.0
// Encodes text with a unigram model and caches the ids of the words that it has seen.
//
// Up to rounding, the best segmentation of a text is that of its words (word_splitter.h), one after
// the other. But scores are summed in float over the whole text (segmenter.h): if two segmentations
// of a word have almost the same score, the sum of the text before the word decides. So the cache
// stores for each word the largest sum at which rounding errors are smaller than the margin between
// its best and its second best segmentation. Where the sum may be larger, it is computed exactly
// from the ids so far, and the word is segmented again from it.
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
#include "data/word_splitter.h"
#include "data/word_table.h"

namespace sentencepiece {
class SentencePieceProcessor;
}

namespace syntra {

class WordCache {
 public:
  // Null if the model is not a unigram model. If its texts cannot be split, each counts as one
  // word, and nothing is cached. `processor` must outlive the cache.
  static std::unique_ptr<WordCache> MakeIfUnigram(
      const sentencepiece::SentencePieceProcessor& processor, const tokenizer::ModelFile& model);

  // Sets `*ids` to the ids of `text`. False if SentencePiece disagrees about a word: the cache must
  // then not be used. Besides the ids it takes about 6 bytes of memory for each byte of the longest
  // word.
  bool Encode(std::string_view text, std::vector<int32_t>* ids);

 private:
  WordCache(const sentencepiece::SentencePieceProcessor& processor,
            const tokenizer::ModelFile& model);

  bool Append(const TextWord& word, std::vector<int32_t>* ids);
  // Appends a cached word's ids, if the sum before it allows.
  bool AppendCached(const Word& word, std::vector<int32_t>* ids);
  // `cached`: the word has ids for a smaller sum.
  bool AppendNew(const TextWord& word, bool cached, std::vector<int32_t>* ids);
  // Valid until the next call.
  std::string_view NormalForm(const TextWord& word);
  // Adds a word to the cache, if it fits.
  const Word* Remember(const TextWord& word);
  float LargestSum(const Segmentation& word) const;
  // Brings sum_ up to date with the ids so far.
  void FindSum(const std::vector<int32_t>& ids);
  bool IsToBeChecked(const TextWord& word);
  // Whether SentencePiece gives the word the same ids, or others with the same score: versions
  // after 0.1.97 break ties differently.
  bool AgreesWithSentencePiece(const TextWord& word);

  const sentencepiece::SentencePieceProcessor& processor_;
  std::shared_ptr<const Normalizer> normalizer_;
  Segmenter segmenter_;
  WordSplitter splitter_;
  WordTable words_;
  uint64_t new_words_ = 0;
  // The state of the text being encoded:
  size_t id_count_ = 0;  // how many of the vector are ids; the rest is room
  float sum_ = 0;        // the score of its first summed_ ids
  size_t summed_ = 0;
  double magnitude_ = 0;  // at least that of the sum of all ids
  Segmentation kept_;
  std::string normal_;
};

}  // namespace syntra
