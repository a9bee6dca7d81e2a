// SPDX-License-Identifier: Apache-2.0
#include "metrics/unicode_text.h"

#include <unicase.h>
#include <unictype.h>
#include <unistr.h>

#include <cstdlib>
#include <memory>
#include <new>

namespace syntra {
namespace {

const uint8_t* Bytes(std::string_view text) {
  return reinterpret_cast<const uint8_t*>(text.data());
}

std::string WellFormed(std::string_view text) {
  if (!u8_check(Bytes(text), text.size())) return std::string(text);
  std::string repaired;
  for (const Character& one : Characters(text)) {
    repaired += one.code == 0xFFFD ? "\uFFFD" : one.bytes;
  }
  return repaired;
}

// The text through a case mapping of libunistring.
std::string Mapped(std::string_view text, decltype(u8_tolower)* map) {
  const std::string whole = WellFormed(text);
  size_t length = 0;
  const std::unique_ptr<uint8_t, void (*)(void*)> mapped(
      map(Bytes(whole), whole.size(), nullptr, nullptr, nullptr, &length), std::free);
  if (!mapped) throw std::bad_alloc();
  return {reinterpret_cast<const char*>(mapped.get()), length};
}

}  // namespace

std::vector<Character> Characters(std::string_view text) {
  std::vector<Character> characters;
  while (!text.empty()) {
    Character one;
    const int length = u8_mbtouc(&one.code, Bytes(text), text.size());
    one.bytes = text.substr(0, length);
    text.remove_prefix(length);
    characters.push_back(one);
  }
  return characters;
}

bool IsSpace(uint32_t code) {
  return (code >= 0x1C && code <= 0x1F) || uc_is_property_white_space(code);
}

bool IsWordCharacter(uint32_t code) {
  return code == '_' ||
         uc_is_general_category_withtable(code, UC_CATEGORY_MASK_L | UC_CATEGORY_MASK_N);
}

bool IsAsciiPunctuation(uint32_t code) {
  constexpr std::string_view kPunctuation = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~";
  return code < 0x80 && kPunctuation.find(static_cast<char>(code)) != std::string_view::npos;
}

std::string LowerCase(std::string_view text) { return Mapped(text, u8_tolower); }

std::string UpperCase(std::string_view text) { return Mapped(text, u8_toupper); }

bool IsLowerCase(uint32_t code) { return uc_is_property_lowercase(code); }

std::string Replaced(std::string_view text, std::string_view old, std::string_view replacement) {
  std::string replaced;
  for (size_t at; (at = text.find(old)) != text.npos; text.remove_prefix(at + old.size())) {
    (replaced += text.substr(0, at)) += replacement;
  }
  return replaced += text;
}

std::vector<std::string_view> SplitAtSpace(std::string_view text) {
  std::vector<std::string_view> words;
  bool in_word = false;
  for (const Character& one : Characters(text)) {
    if (IsSpace(one.code)) {
      in_word = false;
      continue;
    }
    if (!in_word) words.emplace_back(one.bytes.data(), 0);
    words.back() = {words.back().data(), words.back().size() + one.bytes.size()};
    in_word = true;
  }
  return words;
}

std::string_view StripUnicodeSpace(std::string_view text) {
  const std::vector<std::string_view> words = SplitAtSpace(text);
  if (words.empty()) return text.substr(0, 0);
  return {words.front().data(), words.back().data() + words.back().size()};
}

}  // namespace syntra
