// SPDX-License-Identifier: Apache-2.0
// A configuration as text, differences of two, and its digest.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "configs/schema/config.pb.h"

namespace syntra {

// Text that LoadConfig reads back. Minimal: only what differs from the defaults. Full: every field.
std::string MinimalConfigText(const Config& config);
std::string FullConfigText(const Config& config);

// Every field by its path ("model.mixer.attention.term[0]...") with its value as text, defaults
// included, in schema order.
std::vector<std::pair<std::string, std::string>> ConfigValues(const Config& config);

// "path: a -> b" for each field whose value differs, defaults included; "(none)" for what one side
// lacks.
std::vector<std::string> ConfigDifferences(const Config& a, const Config& b);

// XXH3-128 of the minimal text as 32 hexadecimal digits: equal for equal settings, however written.
std::string ConfigDigest(const Config& config);

}  // namespace syntra
