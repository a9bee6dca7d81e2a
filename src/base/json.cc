// SPDX-License-Identifier: Apache-2.0
#include "base/json.h"

#include <limits>

namespace syntra {
namespace {

// Parsing takes no stack, but writing and walking a value does, a frame a level: a file of brackets
// alone must not end the program.
constexpr int kMostLevels = 64;

// Where the text is nested deeper than that; its size if nowhere.
size_t TooDeepAt(std::string_view text) {
  int depth = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string && c == '\\') {
      ++i;
    } else if (c == '"') {
      in_string = !in_string;
    } else if (!in_string && (c == '[' || c == '{')) {
      if (++depth > kMostLevels) return i;
    } else if (!in_string && (c == ']' || c == '}')) {
      --depth;
    }
  }
  return text.size();
}

}  // namespace

Json ParseJson(const std::string& text) {
  if (const size_t at = TooDeepAt(text); at < text.size()) {
    throw Json::parse_error::create(
        101, at, "nested more than " + std::to_string(kMostLevels) + " levels deep", nullptr);
  }
  return Json::parse(text);
}

Json TryParseJson(std::string_view text) {
  if (TooDeepAt(text) < text.size()) return Json(Json::value_t::discarded);
  return Json::parse(text, nullptr, /*allow_exceptions=*/false);
}

std::optional<int64_t> AsInteger(const Json& value) {
  constexpr auto kMost = static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
  if (!value.is_number_integer()) return std::nullopt;
  if (value.is_number_unsigned() && value.get<uint64_t>() > kMost) return std::nullopt;
  return value.get<int64_t>();
}

int64_t IntegerOf(const Json& value) {
  if (const auto integer = AsInteger(value)) return *integer;
  if (value.is_number_integer()) {
    throw Json::out_of_range::create(406, "an integer above 2^63 - 1", nullptr);
  }
  throw Json::type_error::create(
      302, std::string("must be an integer, but is ") + value.type_name(), nullptr);
}

std::string JsonText(const Json& json, int indent) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

}  // namespace syntra
