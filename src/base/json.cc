// SPDX-License-Identifier: Apache-2.0
#include "base/json.h"

namespace syntra {

Json ParseJson(const std::string& text) { return Json::parse(text); }

std::string JsonText(const Json& json, int indent) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

}  // namespace syntra
