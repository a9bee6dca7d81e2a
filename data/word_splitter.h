// SPDX-License-Identifier: Apache-2.0
// Splits a text into words that can be segmented one by one: no piece of the model, no rule of its
// normalizer and no run of unknown characters reaches from one word into the next.
//
// Words end at spaces. If the model keeps ASCII letters apart from digits and punctuation, as
// SentencePiece's trainer does by default, they also end where such characters meet: "don't" is
// three words. So fewer words are different, and most are in the cache.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "data/normalizer.h"
#include "data/word_table.h"

namespace syntra {

struct TextWord {
  std::string_view text;    // without the spaces that end it
  bool after_space = true;  // or at the beginning of the text: a space mark precedes it
  WordKey key;              // empty if the word is too long for the table
  uint64_t hash = 0;        // of the key
};

class WordSplitter {
 public:
  WordSplitter(const tokenizer::ModelFile& model, const Normalizer& normalizer);

  // Begins a text, which must outlive its words.
  void Begin(std::string_view text);
  // Sets `*word` to the next word; false at the end of the text. If pieces or rules may reach
  // across spaces, the whole text is one word without a key.
  bool Next(TextWord* word);

 private:
  // What a byte is. Others are bytes of longer characters and control characters.
  enum Kind : uint8_t { kOther = 0, kSpace = 1, kPrintable = 2, kLetter = 3 };

  void FindBeginnings();
  void Take(size_t end, TextWord* word) const;

  bool splits_ = false;
  Kind kinds_[256] = {};  // if words end only at spaces, letters count as kPrintable

  std::string_view text_;
  size_t at_ = 0;            // where the next word begins
  bool after_space_ = true;  // the next word follows spaces
  // The block of 64 bytes before next_block_, as bits: where the words begin that were not returned
  // yet, and which of these follow spaces.
  size_t next_block_ = 0;
  uint64_t beginnings_ = 0, after_spaces_ = 0;
  // What precedes next_block_.
  uint64_t printable_before_ = 0, letter_before_ = 0;
  uint64_t spaces_before_ = 0;  // spaces with a printable character before them
};

}  // namespace syntra
