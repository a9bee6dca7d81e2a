// SPDX-License-Identifier: Apache-2.0
// Methods of Python's str, for metrics that are defined by Python code. Text is UTF-8; malformed
// bytes count as U+FFFD.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace syntra {

// One character of a text: its code point, and its bytes.
struct Character {
  uint32_t code = 0;
  std::string_view bytes;
};
std::vector<Character> Characters(std::string_view text);

// str.isspace: Unicode's White_Space, and the separators U+001C to U+001F.
bool IsSpace(uint32_t code);
// \w of a str pattern: letters and numbers of any script, and "_". Combining marks are none.
bool IsWordCharacter(uint32_t code);
// string.punctuation: what ASCII has that is neither letter, digit, space nor control. Not the
// quotes and dashes of Unicode.
bool IsAsciiPunctuation(uint32_t code);

// str.lower: Unicode's full mapping of every letter, "İ" to "i" and a dot, "Σ" at the end of a
// word to "ς".
std::string LowerCase(std::string_view text);
// str.upper, likewise: "ß" to "SS".
std::string UpperCase(std::string_view text);
// str.islower of one character.
bool IsLowerCase(uint32_t code);

// str.replace: each `old`, from the left.
std::string Replaced(std::string_view text, std::string_view old, std::string_view replacement);

// Split and strip at Unicode's white space, as str.split() and str.strip() do.
std::vector<std::string_view> SplitAtSpace(std::string_view text);
std::string_view StripUnicodeSpace(std::string_view text);

}  // namespace syntra
