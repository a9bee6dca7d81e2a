// SPDX-License-Identifier: Apache-2.0
#include "data/word_splitter.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <string>
#include <unordered_set>

#include "data/tokenizer_model.pb.h"

namespace syntra {
namespace {

using tokenizer::ModelFile;

constexpr size_t kBlock = 64;  // bytes

bool IsPrintableAscii(char c) { return c > 0x20 && c < 0x7f; }
bool IsLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

// Bit i of the result is the lowest bit of byte i of a little-endian word.
uint64_t LowBits(uint64_t word) { return (word & 0x0101010101010101) * 0x0102040810204080 >> 56; }

// Whether the model has no rules or the built-in ones, none of which reaches across a space between
// ASCII words, or from one printable ASCII character to another.
bool HasKnownRules(const tokenizer::NormalizerSettings& normalizer) {
  const std::string& name = normalizer.name();
  return normalizer.rules().empty() || name == "nmt_nfkc" || name == "nfkc" ||
         name == "nmt_nfkc_cf" || name == "nfkc_cf";
}

bool SplitsAtSpaces(const ModelFile& model) {
  const auto& normalizer = model.normalizer();
  if (model.trainer().treat_whitespace_as_suffix() || !HasKnownRules(normalizer) ||
      !normalizer.add_dummy_prefix() || !normalizer.remove_extra_whitespaces() ||
      !normalizer.escape_whitespaces()) {
    return false;
  }
  bool has_space_mark = false;
  for (const auto& piece : model.pieces()) {
    if (piece.type() == ModelFile::USER_DEFINED) return false;
    if (piece.type() != ModelFile::NORMAL) continue;
    if (piece.piece().find(kSpaceMark, 1) != std::string::npos) return false;
    has_space_mark |= piece.piece() == kSpaceMark;
  }
  return has_space_mark;
}

bool MixesLettersWithOthers(const std::string& piece) {
  return std::ranges::adjacent_find(piece, [](char a, char b) {
           return IsPrintableAscii(a) && IsPrintableAscii(b) && IsLetter(a) != IsLetter(b);
         }) != piece.end();
}

// Whether no piece has a letter next to another printable ASCII character, and letters are pieces
// themselves. So none is unknown: unknown characters that follow each other become one token.
bool SplitsAtLetters(const ModelFile& model, const Normalizer& normalizer) {
  std::unordered_set<std::string> characters;
  for (const auto& piece : model.pieces()) {
    if (piece.type() != ModelFile::NORMAL) continue;
    if (MixesLettersWithOthers(piece.piece())) return false;
    if (piece.piece().size() == 1) characters.insert(piece.piece());
  }
  std::string normal;
  for (char c = 0x21; c < 0x7f; ++c) {
    normalizer.Normalize({&c, 1}, &normal);
    normal.erase(0, kSpaceMark.size());
    if (normal.size() != 1 || IsLetter(normal[0]) != IsLetter(c)) return false;
    if (IsLetter(c) && !characters.contains(normal)) return false;
  }
  return true;
}

}  // namespace

WordSplitter::WordSplitter(const ModelFile& model, const Normalizer& normalizer)
    : splits_(SplitsAtSpaces(model)) {
  if (!splits_) return;
  const bool splits_at_letters = SplitsAtLetters(model, normalizer);
  for (char c = 0x21; c < 0x7f; ++c) {
    kinds_[static_cast<uint8_t>(c)] = splits_at_letters && IsLetter(c) ? kLetter : kPrintable;
  }
  const auto normal = [&](const std::string& text) {
    std::string form;
    normalizer.Normalize(text, &form);
    return form;
  };
  for (const char space : {' ', '\t', '\n', '\r'}) {
    const std::string probe = {'a', space, 'b'};
    if (normal(probe) == normal("a b")) kinds_[static_cast<uint8_t>(space)] = kSpace;
  }
}

void WordSplitter::Begin(std::string_view text) {
  text_ = text;
  at_ = 0;
  after_space_ = true;
  next_block_ = splits_ ? 0 : text.size();
  beginnings_ = 0;
  printable_before_ = letter_before_ = spaces_before_ = 0;
}

// Words are found by operations on 64 bits at once, since no branch could foretell where they end.
void WordSplitter::FindBeginnings() {
  const std::string_view block = text_.substr(next_block_, kBlock);
  next_block_ += block.size();
  std::array<uint8_t, kBlock> kinds{};
  for (size_t i = 0; i < block.size(); ++i) kinds[i] = kinds_[static_cast<uint8_t>(block[i])];
  uint64_t low = 0, high = 0;  // the two bits of each byte's kind
  for (size_t i = 0; i < kBlock; i += 8) {
    uint64_t eight;
    std::memcpy(&eight, &kinds[i], sizeof eight);
    low |= LowBits(eight) << i;
    high |= LowBits(eight >> 1) << i;
  }
  const uint64_t printable = high, letters = high & low, spaces = low & ~high;
  const uint64_t after_printable = printable << 1 | printable_before_;
  const uint64_t after_letter = letters << 1 | letter_before_;
  const bool is_last = next_block_ == text_.size();
  const uint64_t next = is_last || kinds_[static_cast<uint8_t>(text_[next_block_])] != kOther;
  const uint64_t before_known = (low | high) >> 1 | next << (block.size() - 1);
  // Next to other characters, a combining mark or a removed character could change the result. So
  // spaces count if they lie between printable ASCII characters. The addition carries a bit from
  // the first of several spaces to the place after the last.
  const uint64_t first_spaces = spaces & (after_printable | spaces_before_);
  uint64_t behind;
  const bool open = __builtin_add_overflow(first_spaces, spaces, &behind);
  after_spaces_ = (behind | spaces_before_) & printable;
  // A letter that a mark follows becomes another character.
  beginnings_ =
      after_spaces_ | (printable & after_printable & (letters ^ after_letter) & before_known);
  printable_before_ = printable >> (kBlock - 1);
  letter_before_ = letters >> (kBlock - 1);
  spaces_before_ = open ? 1 : 0;
}

bool WordSplitter::Next(TextWord* word) {
  while (beginnings_ == 0 && next_block_ < text_.size()) FindBeginnings();
  if (beginnings_ == 0) {  // the last word
    if (at_ == text_.size()) return false;
    Take(text_.size(), word);
    at_ = text_.size();
    return true;
  }
  const int bit = std::countr_zero(beginnings_);
  const size_t next = (next_block_ - 1) / kBlock * kBlock + bit;
  const bool after_space = after_spaces_ >> bit & 1;
  beginnings_ &= beginnings_ - 1;
  size_t end = after_space ? next - 1 : next;
  while (kinds_[static_cast<uint8_t>(text_[end - 1])] == kSpace) --end;
  Take(end, word);
  at_ = next;
  after_space_ = after_space;
  return true;
}

void WordSplitter::Take(size_t end, TextWord* word) const {
  word->text = text_.substr(at_, end - at_);
  word->after_space = after_space_;
  word->key = splits_ ? WordKey::Of(text_, at_, end - at_, after_space_) : WordKey();
  word->hash = word->key.Hash();
}

}  // namespace syntra
