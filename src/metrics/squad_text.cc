// SPDX-License-Identifier: Apache-2.0
#include "metrics/squad_text.h"

#include <fmt/format.h>

#include "metrics/unicode_text.h"

namespace syntra {
namespace {

std::string WithoutPunctuation(std::string_view text) {
  std::string kept;
  for (const Character& one : Characters(text)) {
    if (!IsAsciiPunctuation(one.code)) kept += one.bytes;
  }
  return kept;
}

// A word is a run of letters and digits, whatever else stands beside it: the dash of "–a–" stays.
std::string WithoutArticles(std::string_view text) {
  std::string kept, word;
  const auto end_word = [&] {
    kept += word == "a" || word == "an" || word == "the" ? " " : word;
    word.clear();
  };
  for (const Character& one : Characters(text)) {
    if (IsWordCharacter(one.code)) {
      word += one.bytes;
    } else {
      end_word();
      kept += one.bytes;
    }
  }
  end_word();
  return kept;
}

}  // namespace

std::string NormalizeSquad(std::string_view answer) {
  const std::string text = WithoutArticles(WithoutPunctuation(LowerCase(answer)));
  return fmt::format("{}", fmt::join(SplitAtSpace(text), " "));
}

}  // namespace syntra
