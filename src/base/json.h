// SPDX-License-Identifier: Apache-2.0
// JSON: values whose members keep their order, reading and writing them.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace syntra {

using Json = nlohmann::ordered_json;

// At most 64 levels deep. Throws Json::exception, which says where the text is wrong.
Json ParseJson(const std::string& text);

// As ParseJson, for a text that may be malformed: the result is then discarded
// (Json::is_discarded).
Json TryParseJson(std::string_view text);

// The value of an integer that fits into int64; nothing for anything else, of which get() would
// make something.
std::optional<int64_t> AsInteger(const Json& value);
// The same; throws Json::exception for anything else.
int64_t IntegerOf(const Json& value);

// On one line, or with `indent` spaces a level. Bytes that are not UTF-8 (paths and environment
// variables may hold such) become U+FFFD.
std::string JsonText(const Json& json, int indent = -1);

}  // namespace syntra
