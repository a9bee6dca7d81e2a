// SPDX-License-Identifier: Apache-2.0
#include "metrics/bleu_words.h"

#include <unictype.h>

#include <utility>

#include "metrics/unicode_text.h"

namespace syntra {
namespace {

using Accepts = bool (*)(uint32_t code);

bool IsNumber(uint32_t code) { return uc_is_general_category_withtable(code, UC_CATEGORY_MASK_N); }
bool IsNoNumber(uint32_t code) { return !IsNumber(code); }
bool IsPunctuation(uint32_t code) {
  return uc_is_general_category_withtable(code, UC_CATEGORY_MASK_P);
}
bool IsSymbol(uint32_t code) { return uc_is_general_category_withtable(code, UC_CATEGORY_MASK_S); }

bool IsDigit(uint32_t code) { return code >= '0' && code <= '9'; }
bool IsNoDigit(uint32_t code) { return !IsDigit(code); }
bool IsStopOrComma(uint32_t code) { return code == '.' || code == ','; }
bool IsHyphen(uint32_t code) { return code == '-'; }
// The apostrophe, the comma, the hyphen and the full stop are none: rules of their own treat them.
bool IsSign13a(uint32_t code) {
  return code != ' ' && code != '\'' && !IsStopOrComma(code) && !IsHyphen(code) &&
         IsAsciiPunctuation(code);
}

// Each sign a word of its own.
std::string Apart(std::string_view text, Accepts is_sign) {
  std::string spaced;
  for (const Character& one : Characters(text)) {
    if (is_sign(one.code)) {
      (spaced += ' ') += one.bytes;
      spaced += ' ';
    } else {
      spaced += one.bytes;
    }
  }
  return spaced;
}

// Makes the sign of each pair a word of its own. A pair is two neighbours that `first` and `second`
// accept, and `sign` tells which of the two is the sign. Pairs do not overlap.
enum class Sign { kFirst, kSecond };
std::string ApartInPairs(std::string_view text, Accepts first, Accepts second, Sign sign) {
  const std::vector<Character> characters = Characters(text);
  std::string spaced;
  for (size_t i = 0; i < characters.size(); ++i) {
    const bool is_pair =
        i + 1 < characters.size() && first(characters[i].code) && second(characters[i + 1].code);
    if (!is_pair) {
      spaced += characters[i].bytes;
      continue;
    }
    if (sign == Sign::kFirst) spaced += ' ';
    (spaced += characters[i].bytes) += ' ';
    spaced += characters[++i].bytes;
    if (sign == Sign::kSecond) spaced += ' ';
  }
  return spaced;
}

std::string WithoutSpaceAtEnd(std::string_view text) {
  const std::string_view kept = StripUnicodeSpace(text);
  return std::string(text.substr(0, kept.data() + kept.size() - text.data()));
}

std::vector<std::string> WordsOf(std::string_view spaced) {
  const std::vector<std::string_view> words = SplitAtSpace(spaced);
  return {words.begin(), words.end()};
}

}  // namespace

std::vector<std::string> InternationalWords(std::string_view text) {
  std::string spaced = WithoutSpaceAtEnd(text);
  spaced = ApartInPairs(spaced, IsNoNumber, IsPunctuation, Sign::kSecond);
  spaced = ApartInPairs(spaced, IsPunctuation, IsNoNumber, Sign::kFirst);
  return WordsOf(Apart(spaced, IsSymbol));
}

std::vector<std::string> Mteval13aWords(std::string_view text) {
  std::string spaced = WithoutSpaceAtEnd(text);
  // In this order, so that "&amp;lt;" becomes "<".
  const std::pair<const char*, const char*> replacements[] = {
      {"<skipped>", ""}, {"-\n", ""},   {"\n", " "},  {"&quot;", "\""},
      {"&amp;", "&"},    {"&lt;", "<"}, {"&gt;", ">"}};
  for (const auto& [old, replacement] : replacements) spaced = Replaced(spaced, old, replacement);
  spaced = Apart(' ' + spaced + ' ', IsSign13a);
  spaced = ApartInPairs(spaced, IsNoDigit, IsStopOrComma, Sign::kSecond);
  spaced = ApartInPairs(spaced, IsStopOrComma, IsNoDigit, Sign::kFirst);
  return WordsOf(ApartInPairs(spaced, IsDigit, IsHyphen, Sign::kSecond));
}

}  // namespace syntra
