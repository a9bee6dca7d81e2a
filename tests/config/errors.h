// SPDX-License-Identifier: Apache-2.0
// Runs the parser on a text and returns what it makes of it, or the errors that it reports.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "config/config.h"

namespace syntra {

// `text` as file "x".
inline Config ConfigOfText(const std::string& text) {
  return ParseConfig("x", text, {}, kForModel);
}

// The lines of the error that is thrown when `text` is parsed as file "x"; empty if it is accepted.
inline std::vector<std::string> ErrorLines(const std::string& text,
                                           const ConfigPurpose& purpose = kForModel) {
  try {
    ParseConfig("x", text, {}, purpose);
    return {};
  } catch (const Error& error) {
    return Split(error.what(), '\n');
  }
}

// The same for --set.
inline std::vector<std::string> OverrideErrorLines(const std::string& assignment,
                                                   const ConfigPurpose& purpose = kForModel) {
  try {
    LoadConfig({}, std::vector<std::string>{assignment}, purpose);
    return {};
  } catch (const Error& error) {
    return Split(error.what(), '\n');
  }
}

}  // namespace syntra
