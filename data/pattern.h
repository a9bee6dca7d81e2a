// SPDX-License-Identifier: Apache-2.0
// From the patterns of a configuration to the list of files of a corpus.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/file.h"

namespace syntra {

// The files that the glob patterns match: patterns in order, each one's files by name, a file once.
// Throws Error(kData) if a pattern matches nothing, or if it matches some but not all of the files
// of a numbered set ("c4-train.00007-of-01024.json.gz") that it asks for.
std::vector<Path> ExpandPatterns(std::span<const std::string> patterns);

}  // namespace syntra
