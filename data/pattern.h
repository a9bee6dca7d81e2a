// SPDX-License-Identifier: Apache-2.0
// Expands the glob patterns of a configuration to the list of a corpus's files.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/file.h"

namespace syntra {

// Whether this is a pattern, and not the name of a file, which may have the same characters.
bool IsPattern(const std::string& text);

// The file of this name or, if there is none, the files that match it as a pattern, sorted; there
// may be none. Throws Error(kResources) if a directory cannot be read to its end, as on a file
// server that fails: some names would be missing.
std::vector<std::string> NamesOf(const std::string& pattern);

// The files that are named or that the glob patterns match, in the order of the patterns and by
// name within each; no file twice. Throws Error(kData) if a pattern matches nothing or a directory,
// or if files of a numbered set ("c4-train.00007-of-01024.json.gz") that it would match are
// missing.
std::vector<Path> ExpandPatterns(std::span<const std::string> patterns);

}  // namespace syntra
