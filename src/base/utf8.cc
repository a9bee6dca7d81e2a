// SPDX-License-Identifier: Apache-2.0
#include "base/utf8.h"

#include <simdjson.h>
#include <unistr.h>

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace syntra {

std::string_view WithoutByteOrderMark(std::string_view start, const std::string& name) {
  using std::string_view_literals::operator""sv;
  // The little-endian mark of UTF-32 starts with that of UTF-16.
  for (const auto& [mark, encoding] : {std::pair{"\xFF\xFE\0\0"sv, "UTF-32"},
                                       {"\0\0\xFE\xFF"sv, "UTF-32"},
                                       {"\xFF\xFE"sv, "UTF-16"},
                                       {"\xFE\xFF"sv, "UTF-16"}}) {
    if (!start.starts_with(mark)) continue;
    Fail(ExitCode::kData,
         "{}: byte 0: the text is {}, as its byte-order mark says; convert it to UTF-8, for "
         "example with \"iconv -f {} -t UTF-8\"",
         name, encoding, encoding);
  }
  return start.substr(start.starts_with(kByteOrderMark) ? kByteOrderMark.size() : 0);
}

size_t CodePointCount(std::string_view text) {
  return std::ranges::count_if(text, [](char byte) { return !ContinuesCharacter(byte); });
}

bool IsUtf8(std::string_view text) { return simdjson::validate_utf8(text); }

std::optional<Utf8Character> FirstCharacter(std::string_view text) {
  if (text.empty()) return std::nullopt;
  Utf8Character first{};
  const int bytes =
      u8_mbtoucr(&first.code, reinterpret_cast<const uint8_t*>(text.data()), text.size());
  if (bytes <= 0) return std::nullopt;
  first.bytes = bytes;
  return first;
}

}  // namespace syntra
