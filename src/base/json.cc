// SPDX-License-Identifier: Apache-2.0
#include "base/json.h"

namespace syntra {
namespace {

// Parsing takes no stack, but writing and walking a value does, a frame a level: a file of brackets
// alone must not end the program.
constexpr int kMostLevels = 64;

void CheckDepth(const std::string& text) {
  int depth = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string && c == '\\') {
      ++i;
    } else if (c == '"') {
      in_string = !in_string;
    } else if (!in_string && (c == '[' || c == '{')) {
      if (++depth > kMostLevels) {
        throw Json::parse_error::create(
            101, i, "nested more than " + std::to_string(kMostLevels) + " levels deep", nullptr);
      }
    } else if (!in_string && (c == ']' || c == '}')) {
      --depth;
    }
  }
}

}  // namespace

Json ParseJson(const std::string& text) {
  CheckDepth(text);
  return Json::parse(text);
}

std::string JsonText(const Json& json, int indent) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

}  // namespace syntra
