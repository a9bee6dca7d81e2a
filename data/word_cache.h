// Word by word encoding with a memory of the words seen, giving exactly SentencePiece's ids.
//
// In a unigram model whose pieces never reach over a space, the best segmentation of a text is that
// of its words, one after the other. What ties words together is rounding: SentencePiece sums
// scores in float over the whole text, and where two segmentations of a word score (almost) the
// same, the sum so far decides between them. So each word is kept with the margin of its best
// segmentation; where the margin does not exceed what rounding can do at the present sum, the word
// is segmented anew from that sum.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "data/piece_table.h"

namespace sentencepiece {
class SentencePieceProcessor;
}

namespace syntra {

class WordCache {
 public:
  // Null if the model does not allow encoding by words: not unigram, pieces with inner spaces, user
  // defined or byte pieces, an unknown normalizer. `processor` must outlive the cache.
  static std::unique_ptr<WordCache> MakeIfExact(
      const sentencepiece::SentencePieceProcessor& processor, const std::string& model_file);

  // False if a word came out otherwise than SentencePiece has it, so that the cache must not be
  // used.
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

  explicit WordCache(const sentencepiece::SentencePieceProcessor& processor);

  // The text up to the next place where words may be parted; moves `at` behind the spaces there.
  std::string_view NextWord(std::string_view text, size_t* at) const;
  bool Append(std::string_view word, std::vector<int32_t>* ids);
  const Word* Find(std::string_view word, uint64_t hash) const;
  void Remember(std::string_view word, uint64_t hash, const Segmentation& found);
  // SentencePiece's normal form of the word, with its leading space mark, and its segmentation in
  // found_; false if that is not SentencePiece's.
  bool Normalize(std::string_view word, std::string* normal);
  bool IsSafe(double margin, int32_t characters) const;
  void Grow();

  const sentencepiece::SentencePieceProcessor& processor_;
  PieceTable pieces_;
  bool is_space_[256] = {};
  float sum_ = 0;                // SentencePiece's running score of the text
  std::vector<uint32_t> slots_;  // open addressing: index into words_ plus 1
  std::vector<Word> words_;
  std::string keys_;
  std::vector<int32_t> ids_;
  std::vector<float> scores_;
  Segmentation found_, again_;
  std::vector<std::string> parts_;
  std::string normal_;
};

}  // namespace syntra
