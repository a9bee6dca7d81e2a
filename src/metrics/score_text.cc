// SPDX-License-Identifier: Apache-2.0
#include "metrics/score_text.h"

#include <unictype.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "base/text.h"
#include "metrics/unicode_text.h"

namespace syntra {
namespace {

constexpr double kNoScore = -1;

// Digits of any script in ASCII, and white space beyond ASCII as " ".
std::string InAscii(std::string_view text) {
  std::string written;
  for (const Character& one : Characters(text)) {
    const int digit = uc_decimal_value(one.code);
    if (digit >= 0) {
      written += static_cast<char>('0' + digit);
    } else if (one.code >= 0x80 && IsSpace(one.code)) {
      written += ' ';
    } else {
      written += one.bytes;
    }
  }
  return written;
}

// Without each "_" that has a digit on both sides.
std::string WithoutSeparators(std::string_view text) {
  const auto is_digit = [&](size_t i) {
    return i < text.size() && text[i] >= '0' && text[i] <= '9';
  };
  std::string kept;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '_' || i == 0 || !is_digit(i - 1) || !is_digit(i + 1)) kept += text[i];
  }
  return kept;
}

// The characters of numbers, and white space. Beyond ASCII there are more digits and spaces.
constexpr std::string_view kOfNumbers = "0123456789+-._eE \t\n\v\f\r\x1c\x1d\x1e\x1f";

}  // namespace

bool BeginsNoScore(std::string_view text) {
  return std::ranges::any_of(text, [](char c) {
    return static_cast<unsigned char>(c) < 0x80 && kOfNumbers.find(c) == std::string_view::npos;
  });
}

double ScoreOfText(std::string_view text) {
  std::string number = WithoutSeparators(StripSpace(InAscii(text)));
  if (number.starts_with("+") && !number.starts_with("+-")) number.erase(0, 1);
  double score = 0;
  return ParseDouble(number, &score) && std::isfinite(score) ? score : kNoScore;
}

}  // namespace syntra
