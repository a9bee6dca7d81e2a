// SPDX-License-Identifier: Apache-2.0
#include "base/utf8.h"

#include <simdjson.h>
#include <unistr.h>

#include <algorithm>

namespace syntra {

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
