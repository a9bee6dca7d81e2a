// SPDX-License-Identifier: Apache-2.0
// UTF-8, as Unicode defines it: no overlong forms, no surrogates, at most U+10FFFF.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace syntra {

inline constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

// The start of a stream without the byte-order mark that it may have. Throws Error(kData) if that
// is the mark of UTF-16 or UTF-32; `name` is the stream's.
std::string_view WithoutByteOrderMark(std::string_view start, const std::string& name);

// Whether a byte can only follow another one of the same character.
constexpr bool ContinuesCharacter(char byte) { return (byte & 0xC0) == 0x80; }

// How many characters a text has: its width on a terminal, as far as letters go.
size_t CodePointCount(std::string_view text);

bool IsUtf8(std::string_view text);

struct Utf8Character {
  uint32_t code;
  size_t bytes;
};
// The character that a text starts with; nothing if it is empty, or if its first bytes are none.
std::optional<Utf8Character> FirstCharacter(std::string_view text);

}  // namespace syntra
