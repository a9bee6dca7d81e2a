// SPDX-License-Identifier: Apache-2.0
// Normalizes a text by the rules in a SentencePiece model file, before the text is segmented.
// SentencePiece does the same, but has no call for it before version 0.2, and takes another 8 bytes
// of memory for each byte of text.
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

// The character that a model has instead of a space, unless it keeps spaces: U+2581.
inline constexpr std::string_view kSpaceMark = "\xe2\x96\x81";

class Normalizer {
 public:
  // Throws Error(kData) if the model's rules are damaged.
  explicit Normalizer(const tokenizer::ModelFile& model);

  // Sets `*normal` to the normal form of `text`. Each byte of malformed UTF-8 becomes U+FFFD.
  void Normalize(std::string_view text, std::string* normal) const;

 private:
  // The first `bytes` bytes of a text become `normal`.
  struct Replacement {
    std::string_view normal;
    size_t bytes;
  };
  Replacement First(std::string_view text) const;
  // The longest rule that applies at the beginning of `text`; 0 bytes if there is none.
  Replacement FindRule(std::string_view text) const;
  bool Step(uint32_t* at, uint8_t byte) const;
  void ReadRules(const std::string& rules);
  void FindPlainBytes();
  // How many bytes at the beginning of `text` certainly stay as they are. Looks at single bytes,
  // not at the trie.
  size_t PlainBytes(std::string_view text) const;

  // A double-array trie in the layout of the Darts-clone library. It maps texts to offsets in
  // normal_forms_, where each normal form ends with a 0 byte.
  std::vector<uint32_t> trie_;
  std::string normal_forms_;
  ByteTrie user_defined_;    // symbols that no rule changes
  bool is_plain_[256] = {};  // no rule begins with the byte, unless a character of several follows
  std::string_view space_;
  bool adds_space_, adds_it_behind_, trims_;
};

}  // namespace syntra
