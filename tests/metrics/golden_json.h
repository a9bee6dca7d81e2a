// SPDX-License-Identifier: Apache-2.0
// Golden fixtures in JSON (tests/golden/README.md), and examples read from them.
#pragma once

#include <string>

#include "base/file.h"
#include "base/json.h"
#include "metrics/metric.h"
#include "tests/base/source_directory.h"

namespace syntra {

inline Json GoldenJson(const std::string& name) {
  return ParseJson(ReadWholeFile(SourceDirectory() + "/tests/golden/" + name));
}

}  // namespace syntra
