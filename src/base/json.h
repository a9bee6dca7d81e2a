// SPDX-License-Identifier: Apache-2.0
// JSON: values whose members keep their order, reading and writing them.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace syntra {

using Json = nlohmann::ordered_json;

// At most 64 levels deep. Throws Json::exception, which says where the text is wrong.
Json ParseJson(const std::string& text);

// On one line, or with `indent` spaces a level. Bytes that are not UTF-8 (paths and environment
// variables may hold such) become U+FFFD.
std::string JsonText(const Json& json, int indent = -1);

}  // namespace syntra
