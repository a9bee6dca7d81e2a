// SPDX-License-Identifier: Apache-2.0
// The normal form that a SentencePiece model gives a text before it is cut into pieces, by the
// rules in the model file. SentencePiece computes it too, but before version 0.2 has no call for
// it, and it keeps 8 bytes for each byte of text beside it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "data/byte_trie.h"

namespace syntra {

namespace tokenizer {
class ModelFile;
}

class Normalizer {
 public:
  // Throws Error(kData) if the model's rules are damaged.
  explicit Normalizer(const tokenizer::ModelFile& model);

  // Replaces `*normal`. Malformed UTF-8 becomes U+FFFD byte by byte.
  void Normalize(std::string_view text, std::string* normal) const;

  // Whether no rule of the model changes any character.
  bool has_rules() const { return !trie_.empty(); }

 private:
  // What the front of a text becomes, and how many bytes of it.
  struct Step {
    std::string_view normal;
    size_t bytes;
  };
  Step First(std::string_view text) const;
  // The longest rule that applies to the front of `text`; 0 bytes if there is none.
  Step FindRule(std::string_view text) const;

  // A double-array trie as the Darts-clone library lays it out, from texts to places in
  // normal_forms_, which are texts that end with 0.
  std::vector<uint32_t> trie_;
  std::string normal_forms_;
  ByteTrie user_defined_;  // symbols that are left as they are
  std::string_view space_;
  bool adds_space_, adds_it_behind_, trims_;
};

}  // namespace syntra
